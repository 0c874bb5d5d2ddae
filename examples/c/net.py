"""The model of program.cpp: pipeline-compile net.py --emit=so -o net.so."""

import torch


def model():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2), torch.nn.Softmax(-1))
    return net.eval().requires_grad_(False), (torch.zeros(3, 4),)

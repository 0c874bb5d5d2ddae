"""What the tests of gradients share."""

from dynamo_state import count, fresh_dynamo

__all__ = ["count", "fresh_dynamo"]

"""Every op in every dtype that eager has it in."""

import pytest
from elementwise import ELEMENTWISE
from groups import check_group, parameters
from movement import MOVEMENT
from structured import STRUCTURED


@pytest.mark.parametrize(("group", "dtype"), parameters({**ELEMENTWISE, **STRUCTURED, **MOVEMENT}))
def test_group(group, dtype):
    check_group(group, dtype)

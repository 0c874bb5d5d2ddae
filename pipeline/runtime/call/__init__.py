"""One call: arguments checked, slots filled, results handed out; the fast path."""

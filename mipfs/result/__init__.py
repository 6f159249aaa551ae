"""What a solve returns, its JSON, its report, and the prediction that it allows."""

from mipfs.result.result import Record, Result, Status, StopReason

__all__ = ["Record", "Result", "Status", "StopReason"]

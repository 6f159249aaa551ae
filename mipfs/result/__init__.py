"""What a solve returns and what is written of it: its JSON and certificate, its report, the prediction it allows."""

from mipfs.result.result import Record, Result, Status, StopReason

__all__ = ["Record", "Result", "Status", "StopReason"]

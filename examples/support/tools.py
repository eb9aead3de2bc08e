"""Tools of the support desk: a shop in a few dictionaries, and a carrier whose service is down."""

from __future__ import annotations

import asyncio
import time

ORDERS = {
    "1042": {"status": "shipped", "shipped_on": "24 November", "items": ["desk lamp"], "parcel": "NO-5531-77"},
    "1043": {"status": "being packed", "items": ["oak shelf", "wall hooks"]},
}
STOCK = {"desk lamp": 12, "oak shelf": 0, "wall hooks": 240}
SHIPPING = {"NO": {"price": "EUR 9.90", "days": 4}, "DE": {"price": "EUR 4.90", "days": 2}}


def lookup_order(order_id: str) -> dict[str, object]:
    """Where an order is and what is in it.

    Args:
        order_id: The number of the order, digits only.
    """
    time.sleep(0.12)  # stands for the shop's database
    if order_id not in ORDERS:
        raise LookupError(f"there is no order {order_id}")
    return {"order_id": order_id, **ORDERS[order_id]}


def check_stock(item: str) -> dict[str, object]:
    """How many pieces of an item are in stock.

    Args:
        item: The item's name, in lower case.
    """
    time.sleep(0.2)
    return {"item": item, "in_stock": STOCK.get(item, 0)}


async def quote_shipping(country: str) -> dict[str, object]:
    """Price and duration of a delivery; a coroutine, for tools that wait on a network."""
    await asyncio.sleep(0.3)
    if country not in SHIPPING:
        raise LookupError(f"we do not deliver to {country}")
    return {"country": country, **SHIPPING[country]}


def track_parcel(parcel: str) -> str:
    """Where the carrier has scanned a parcel last. The carrier's service is down, today and always.

    Args:
        parcel: The parcel's number as the order has it.
    """
    time.sleep(0.15)
    raise ConnectionError(f"the carrier's service does not answer (parcel {parcel})")

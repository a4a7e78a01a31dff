import fairlead_bus


def test_every_name_is_there_whether_its_room_is_imported_at_once_or_on_demand() -> None:
    assert [name for name in fairlead_bus.__all__ if getattr(fairlead_bus, name, None) is None] == []
    assert not hasattr(fairlead_bus, "Anouncer")

"""Windows, tabs, docks, menus, actions and shortcuts: what holds the rooms together."""

"""The analysis: its controller, the pictures it shows and the controls of its layers."""

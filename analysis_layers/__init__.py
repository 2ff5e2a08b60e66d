"""Analysis layers: operators that observe or modify tensors in numpy between engine runs; removed in deployment."""

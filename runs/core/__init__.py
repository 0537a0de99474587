"""What every room stands on: words of the product, ports to the world, names, paths, clock, hosts."""

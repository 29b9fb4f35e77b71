package cache

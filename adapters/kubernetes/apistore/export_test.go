package apistore

// Losses is of how many objects it is remembered what could not be read.
func (c *Collection[T, R]) Losses() int {
	l := c.cache.lost
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.all)
}

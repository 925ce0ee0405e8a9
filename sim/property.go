package sim

// Property is something that must hold in a world at any time. The world looks
// after every effect on an object or a VM, whoever has had it; what happens to pods
// alone it sees with the next of these. The error is all that is kept of the state:
// it should say what was seen.
type Property struct {
	// Name tells properties apart where one is broken.
	Name string
	// Check returns an error when it does not hold. It must not change the
	// world.
	Check func(*World) error
}

// checkProperties holds the world to what its user asks of it.
func (w *World) checkProperties() {
	for _, p := range w.o.Properties {
		if err := p.Check(w); err != nil {
			w.violate(p.Name, "%v", err)
		}
	}
}

package sim

// Property is something that must hold in a world at any time. The world checks it after every
// effect on an object or a VM, from any source. It checks what happens to pods alone with the next
// of these effects. Only the error is kept of the state, so it should say what was seen.
type Property struct {
	// Name tells properties apart where one is broken.
	Name string
	// Check returns an error if the property does not hold. It must not change the world.
	Check func(*World) error
}

// checkProperties checks the properties that the user of the world added.
func (w *World) checkProperties() {
	for _, p := range w.o.Properties {
		if err := p.Check(w); err != nil {
			w.violate(p.Name, "%v", err)
		}
	}
}

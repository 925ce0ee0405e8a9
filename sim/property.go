package sim

// checkProperties checks the properties that the user of the world added, after each effect.
func checkProperties(w *World) {
	w.subscribe(func(e event) {
		if _, ok := e.(effect); !ok {
			return
		}
		for _, p := range w.o.Properties {
			if p.Check == nil {
				continue
			}
			if err := p.Check(w); err != nil {
				w.violate(p.Name, "%v", err)
			}
		}
	})
}

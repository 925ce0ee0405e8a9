// Package simtest tests a driver, policies and properties in worlds of package sim, in which anything
// may fail:
//
//	func TestDriver(t *testing.T) {
//		simtest.Run(t, simtest.Options{Driver: func(w *sim.World) driver.Driver { return acme.New(w.Provider()) }})
//	}
//
// Run plays a scenario for each of 200 seeds. It checks the invariants of package sim, the given
// properties, and that each answer of the driver is true. For one machine in four, DeleteMachine gets no
// VM ID, as if no create had been answered. If something is violated, Run looks for a smaller scenario
// that breaks the same rule, and reports what happened in it as a story: the lines about the objects that
// the violation names, with the driver's answers and a mark at the call to blame. The flag -simtest.seed
// plays one seed again and prints the whole story:
//
//	go test -run '^TestDriver$' -simtest.seed=17
//
// Only test binaries that import this package know the flag.
package simtest

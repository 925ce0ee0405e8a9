package gallery_test

// ofSim are mistakes in package sim, whose checks everything else is held to.
var ofSim = []mutant{
	{
		name:   "calls of a killed process count as expired though no later process could carry them out",
		breaks: "P7",
		file:   "sim/fleet_history.go",
		from:   "s.Now().Sub(s.ableSince(then)) <= inFlight",
		to:     "s.Now().Sub(then) <= inFlight",
		by:     "TestEarlierOrdersAreExcused",
	},
}

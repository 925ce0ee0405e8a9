package gallery_test

// ofRollout are mistakes in package rollout.
var ofRollout = []mutant{
	{
		name:   "unavailable old machines are deleted during an update in place",
		breaks: "P47",
		file:   "deployment/rollout/inplace.go",
		from:   "if d.hasNew && d.current.spec == d.replicas {",
		to:     "if d.hasNew {",
		by:     "TestInPlaceAgreesWithOracle",
	},
	{
		name:   "a rollout may have one machine too many",
		breaks: "P7",
		file:   "deployment/rollout/step.go",
		from:   "d.ceiling = d.replicas + surge",
		to:     "d.ceiling = d.replicas + surge + 1",
	},
	{
		name:   "unavailable new machines don't count for the unavailability budget",
		breaks: "P6",
		file:   "deployment/rollout/step.go",
		from:   "budget := ordered - d.floor - d.current.lacking()",
		to:     "budget := ordered - d.floor",
		by:     "TestInvariantsOnManyFleets|TestP2ScalingAndRollingTogetherObeyAllBounds",
	},
	{
		name:   "a terminating machine does not count for the surge",
		breaks: "P7",
		file:   "deployment/rollout/step.go",
		from:   "return max(m.spec, m.actual+m.counted) }",
		to:     "return m.spec }",
	},
	{
		name:   "with Recreate, new machines are made while old ones are still terminating",
		breaks: "Recreate waits until the old sets' machines are gone",
		file:   "deployment/rollout/recreate.go",
		from:   "d.extend(true)",
		to:     "d.extend(false)",
	},
	{
		name:   "surge is rounded down",
		breaks: "P9",
		file:   "deployment/rollout/percent.go",
		from:   "return v.resolve(total, 99)",
		to:     "return v.resolve(total, 0)",
		by:     "TestScenarios",
	},
	{
		name:   "unavailability is rounded up",
		breaks: "P9",
		file:   "deployment/rollout/percent.go",
		from: `return v.resolve(total, 0)
}

// resolve`,
		to: `return v.resolve(total, 99)
}

// resolve`,
		by: "TestScenarios",
	},
	{
		name:   "a rollout with neither surge nor unavailability never continues",
		breaks: "P9",
		file:   "deployment/rollout/fenceposts.go",
		from: `if b.Surge == 0 && b.Unavailable == 0 {
		b.Unavailable = 1
	}
	return b`,
		to: `if b.Surge == 0 && b.Unavailable == 0 {
		b.Unavailable = 0
	}
	return b`,
		by: "TestScenarios",
	},
	{
		name:   "a rollout may have one available machine too few",
		breaks: "P7",
		file:   "deployment/rollout/step.go",
		from:   "d.floor = max(0, d.replicas-unavailable)",
		to:     "d.floor = max(0, d.replicas-unavailable-1)",
		by:     "TestInPlaceAgreesWithOracle",
	},
	{
		name:   "a set of a paused deployment is scaled down",
		breaks: "P5",
		file:   "deployment/rollout/step.go",
		from: `if k := min(budget, m.lacking()); k > 0 && !m.paused {
			m.spec -= k
			budget -= k
		}
	}
	spare :=`,
		to: `if k := min(budget, m.lacking()); k > 0 {
			m.spec -= k
			budget -= k
		}
	}
	spare :=`,
		by: "TestP5P7PausedSets",
	},
	{
		name:   "the new set keeps more machines than are wanted",
		breaks: "P1",
		file:   "deployment/rollout/step.go",
		from:   "if trimmed := d.current.spec - d.replicas; trimmed > 0 && !d.current.paused {",
		to:     "if trimmed := d.current.spec - d.replicas; trimmed > 1 && !d.current.paused {",
		by:     "TestInPlaceAgreesWithOracle|TestInvariantsOnManyFleets",
	},
	{
		name:   "more machines are selected for an update than may be unavailable",
		breaks: "P7",
		file:   "deployment/rollout/inplace.go",
		from:   "left := min(d.spareMachines(), d.replicas-d.current.spec-d.underWay(f))",
		to:     "left := min(d.spareMachines()+1, d.replicas-d.current.spec-d.underWay(f))",
		by:     "TestInPlaceAgreesWithOracle|TestPausedSetsElsewhere",
	},
}

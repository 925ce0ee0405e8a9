package rollout

// Bounds are a resolved surge and unavailable, in machines: how far the number of machines may be above
// and below the wanted number. The zero value allows nothing and would stop every rollout, so [Step]
// reads it as one unavailable.
type Bounds struct {
	// Surge is how many machines more than wanted may exist. Range: 0 to math.MaxInt32; below 0
	// counts as 0.
	Surge int32
	// Unavailable is how many of the wanted machines may be missing. Range: 0 to math.MaxInt32;
	// below 0 counts as 0, above the wanted number as all of them.
	Unavailable int32
}

// Fenceposts resolves two settings against the number of machines wanted. It rounds the surge up
// and the unavailable down, so that a percentage never allows less surge or more loss than it says.
// If both come out as 0, as small percentages of small fleets do, one machine may be unavailable,
// since with neither a rollout could not move. A negative number of replicas counts as 0.
func Fenceposts(maxSurge, maxUnavailable IntOrPercent, replicas int32) Bounds {
	b := Bounds{Surge: maxSurge.Ceil(replicas), Unavailable: maxUnavailable.Floor(replicas)}
	if b.Surge == 0 && b.Unavailable == 0 {
		b.Unavailable = 1
	}
	return b
}

// resolved returns surge and unavailable as Step uses them: not negative, and not both zero.
func (b Bounds) resolved() (surge, unavailable int64) {
	surge, unavailable = max(int64(b.Surge), 0), max(int64(b.Unavailable), 0)
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return surge, unavailable
}

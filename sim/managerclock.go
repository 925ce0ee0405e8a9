package sim

import "time"

// managerClock is the clock of the manager. It jumps.
type managerClock struct {
	*apis
	skew   time.Duration // how far it is ahead of the world's
	skewed time.Duration // the same before it jumped
	jumped time.Time     // when it jumped last, or zero
}

// JumpClock sets the manager's clock ahead of the world's by d, or behind it if d is negative.
// Earlier jumps don't matter.
func (c *managerClock) JumpClock(d time.Duration) {
	c.count(ClockJump)
	c.setClock(d)
}

func (c *managerClock) setClock(skew time.Duration) {
	c.skewed, c.jumped = c.skew, c.Now()
	c.skew = skew
}

// managerNow is the time that the manager's clock shows.
func (c *managerClock) managerNow() time.Time { return c.managerTime(c.Now()) }

// managerTime is an instant of the world as the manager's clock would have it: times that the manager
// wrote are compared with that. After a jump it is wrong for earlier instants.
func (c *managerClock) managerTime(then time.Time) time.Time { return then.Add(c.skew) }

// latest returns the latest time that the manager's clock may have shown for orders that are
// carried out now.
func (c *managerClock) latest() time.Time {
	skew := c.skew
	if !c.jumped.IsZero() && c.underWay(c.jumped) {
		skew = max(skew, c.skewed)
	}
	return c.Now().Add(skew)
}

package report

import (
	"math"
	"time"
)

// grid draws the axes, with lines across the plot at round numbers.
func (c *canvas) grid() {
	for n, step := int64(0), roundNumber(c.most, int64(c.bottom-c.top)/36); n <= c.most; n += step {
		c.printf(`<path class="grid" d="M%f %fH%f"/>`, c.left, c.y(n), c.right)
		c.printf(`<text class="ink number" x="%f" y="%f">%s</text>`+"\n", c.left-8, c.y(n)+4, decimal(n))
		if n > math.MaxInt64/2 {
			break
		}
	}
	labels := max(2, int((c.right-c.left)/90))
	for at, step := time.Duration(0), roundTime(c.until, labels); at <= c.until; at += step {
		name := clock(at)
		if at == 0 {
			name = c.zero
		}
		c.printf(`<path class="axis" d="M%f %fv5"/>`, c.x(at), c.bottom)
		c.printf(`<text class="ink tick" x="%f" y="%f">%s</text>`+"\n", c.x(at), c.bottom+20, name)
	}
	c.printf(`<path class="axis" d="M%f %fV%fH%f"/>`+"\n", c.left, c.top, c.bottom, c.right)
	middle := (c.top + c.bottom) / 2
	c.printf(`<text class="ink tick" transform="translate(18 %f) rotate(-90)">machines</text>`+"\n", middle)
	caption := "time (d days, h hours, m minutes, s seconds)"
	if float64(len(caption))*letter > c.right-c.left {
		caption = "time"
	}
	c.printf(`<text class="ink tick" x="%f" y="%f">%s</text>`+"\n",
		(c.left+c.right)/2, c.bottom+42, caption)
}

// roundNumber returns the smallest of 1, 2, 5, 10, 20, 50, ... that divides a range into at most so
// many parts.
func roundNumber(most int64, parts int64) int64 {
	for power := int64(1); power < math.MaxInt64/100; power *= 10 {
		for _, digit := range [...]int64{1, 2, 5} {
			if most/(digit*power) <= parts {
				return digit * power
			}
		}
	}
	return most
}

// roundTimes are the distances that people expect between marks of time.
var roundTimes = [...]time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
	day, 2 * day, 5 * day, 10 * day, 30 * day, 100 * day, 365 * day,
}

// roundTime returns the smallest of roundTimes that divides a range into at most so many parts. For a
// range below a second, or longer than they can divide, it returns one such part of the range.
func roundTime(until time.Duration, parts int) time.Duration {
	if until >= time.Second {
		for _, t := range roundTimes {
			if until/t <= time.Duration(parts) {
				return t
			}
		}
	}
	return max(until/time.Duration(parts), 1)
}

// labelHeight is the least distance between the names of two limits, in pixels.
const labelHeight = 16.0

// limits draws the floor and the ceiling across the plot, with their names to the right. Names that
// would overlap are moved apart.
func (c *chart) limits() {
	floor, ceiling := c.y(int64(c.t.Floor)), c.y(int64(c.t.Ceiling))
	for _, y := range [...]float64{floor, ceiling} {
		c.printf(`<path class="halo" d="M%f %fH%f"/>`, c.left, y, c.right)
	}
	floorLabel, ceilingLabel := floor, ceiling
	if near := labelHeight - (floor - ceiling); near > 0 {
		floorLabel += near / 2
		ceilingLabel -= near / 2
	}
	if low := floorLabel - c.bottom; low > 0 { // the labels of the time axis are below
		floorLabel -= low
		ceilingLabel = min(ceilingLabel, floorLabel-labelHeight)
	}
	name := "ceiling "
	if int64(c.t.Ceiling) > c.most {
		name = "↑ ceiling "
	}
	c.limit("ceiling", name, int64(c.t.Ceiling), ceiling, ceilingLabel)
	c.limit("floor", "floor ", int64(c.t.Floor), floor, floorLabel) // last: where both meet, the ceiling shows in the gaps of its dashes
}

func (c *canvas) limit(class, name string, n int64, y, label float64) {
	if n <= c.most {
		c.printf(`<path class="line %s" d="M%f %fH%f"/>`+"\n", class, c.left, y, c.right)
		c.printf(`<path class="lead %s" d="M%f %fL%f %f"/>`, class, c.right, y, c.right+10, label)
	}
	c.printf(`<text class="name %s-name" x="%f" y="%f">%s</text>`+"\n", class, c.right+13, label+4, name+decimal(n))
}

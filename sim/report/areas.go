package report

import (
	"time"

	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/sim/preview"
)

// band is one of the stacked areas.
type band struct {
	class, name string
	of          func(preview.Counts) int32
}

// bands are the areas, the lowest first.
var bands = [...]band{
	{"old", "old, available", func(c preview.Counts) int32 { return c.OldAvailable }},
	{"new", "new, available", func(c preview.Counts) int32 { return c.NewAvailable }},
	{"lacking", "not available", preview.Counts.Unavailable},
	{"going", "terminating, not counted", func(c preview.Counts) int32 { return c.Terminating }},
}

// areas draws the bands as steps: each count holds until the next sample.
func (c *chart) areas() {
	samples := c.thinned()
	if len(samples) == 0 {
		return
	}
	lower := make([]int64, len(samples))
	upper := make([]int64, len(samples))
	after := make([]time.Duration, len(samples))
	for i := range samples {
		after[i] = samples[i].After
	}
	for _, b := range bands {
		some := false
		for i := range samples {
			n := b.of(samples[i].Counts)
			upper[i] = lower[i] + int64(n)
			some = some || n > 0
		}
		if some {
			c.area(b.class, after, lower, upper)
		}
		lower, upper = upper, lower
	}
}

// manySamples is the number of samples up to which all are drawn.
const manySamples = 2000

// thinned returns the samples to draw. Up to manySamples, these are all. Of more, it returns for each
// pixel the first, the last and the extremes, so that a dip below the floor is never lost.
func (c *chart) thinned() []preview.Sample {
	all := c.t.Samples
	if len(all) <= manySamples {
		return all
	}
	var out []preview.Sample
	for from := 0; from < len(all); {
		to := from + 1
		for to < len(all) && int(c.x(all[to].After)) == int(c.x(all[from].After)) {
			to++
		}
		out = append(out, extremes(all[from:to])...)
		from = to
	}
	return out
}

// extremes returns the first and the last of some samples, and those with the fewest available
// machines and the most machines, ordered by time.
func extremes(samples []preview.Sample) []preview.Sample {
	low, high := 0, 0
	for i := range samples {
		if samples[i].Available() < samples[low].Available() {
			low = i
		}
		if samples[i].Total() > samples[high].Total() {
			high = i
		}
	}
	var out []preview.Sample
	for i := range samples {
		if i == 0 || i == low || i == high || i == len(samples)-1 {
			out = append(out, samples[i])
		}
	}
	return out
}

// failures marks on the axis the times at which sets replaced failed machines.
func (c *chart) failures() {
	for i := range c.t.Steps {
		if s := &c.t.Steps[i]; s.Machines.Reason == machineset.ReasonDeleteFailed {
			x := c.x(s.After)
			c.printf(`<path class="failure" d="M%f %fl-4 8h8Z"/>`+"\n", x, c.bottom-8)
		}
	}
}

package brake_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/internal/brake"
)

const period = 15 * time.Minute

var now = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// taken returns how many of a hundred other things may go.
func taken(b *brake.Brake) (n int) {
	for i := range 100 {
		if b.Take("new-" + strconv.Itoa(i)) {
			n++
		}
	}
	return n
}

// The number counts from the start, the share once a process knows a whole period; the larger one
// wins.
func TestHowManyMayGo(t *testing.T) {
	p := safety.DefaultPolicy()
	assert.Equal(t, 3, taken(brake.New(p, nil, 80, false, period, now)))
	assert.Equal(t, 8, taken(brake.New(p, nil, 80, true, period, now)))
	assert.Equal(t, 3, taken(brake.New(p, nil, 10, true, period, now)))
	p.BrakeShare = 100
	assert.Equal(t, 100, taken(brake.New(p, nil, 0, false, period, now)), "no brake")
}

// An order counts for one period, once, and a second order for the same thing passes.
func TestOrdersCountForAPeriod(t *testing.T) {
	before := []safety.Spent{
		{ID: "old", At: now.Add(-period)}, {ID: "a", At: now.Add(1 - period)}, {ID: "a", At: now.Add(-time.Minute)},
		{ID: "ahead", At: now.Add(time.Hour)},
	}
	b := brake.New(safety.DefaultPolicy(), before, 0, false, period, now)
	assert.False(t, b.Counts("old"))
	assert.True(t, b.Counts("a"))
	assert.Zero(t, b.FreeAt())
	assert.True(t, b.Take("a"), "again")
	assert.Equal(t, 1, taken(b))
	assert.Equal(t, now.Add(period-time.Minute), b.FreeAt(), "the order before the others ends first")
	assert.Equal(t, []safety.Spent{{ID: "a", At: now.Add(-time.Minute)}, {ID: "ahead", At: now}, {ID: "new-0", At: now}}, b.Orders())
}

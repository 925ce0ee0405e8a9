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

// allowed takes a hundred new IDs and returns how many of them the brake allows.
func allowed(b *brake.Brake) (n int) {
	for i := range 100 {
		if b.Take("new-" + strconv.Itoa(i)) {
			n++
		}
	}
	return n
}

// TestTheLargerLimitApplies: the limit is a number, or a share once a process has known a whole period, if that is
// larger.
func TestTheLargerLimitApplies(t *testing.T) {
	p := safety.DefaultPolicy()
	assert.Equal(t, 3, allowed(brake.New(p, nil, 80, false, period, now)))
	assert.Equal(t, 8, allowed(brake.New(p, nil, 80, true, period, now)))
	assert.Equal(t, 3, allowed(brake.New(p, nil, 10, true, period, now)))
	p.BrakeShare = 100
	assert.Equal(t, 100, allowed(brake.New(p, nil, 0, false, period, now)), "a share of 100 turns the brake off")
}

// TestOrdersCountForAPeriod: orders for one ID count once, for one period. A second order for the ID is allowed.
func TestOrdersCountForAPeriod(t *testing.T) {
	before := []safety.Spent{
		{ID: "old", At: now.Add(-period)}, {ID: "a", At: now.Add(1 - period)}, {ID: "a", At: now.Add(-time.Minute)},
		{ID: "ahead", At: now.Add(time.Hour)},
	}
	b := brake.New(safety.DefaultPolicy(), before, 0, false, period, now)
	assert.False(t, b.Counts("old"))
	assert.True(t, b.Counts("a"))
	assert.Zero(t, b.FreeAt())
	assert.True(t, b.Take("a"), "an ID that was ordered before")
	assert.Equal(t, 1, allowed(b))
	assert.Equal(t, now.Add(period-time.Minute), b.FreeAt(), "the oldest order stops counting first")
	assert.Equal(t, []safety.Spent{{ID: "a", At: now.Add(-time.Minute)}, {ID: "ahead", At: now}, {ID: "new-0", At: now}}, b.Orders())
}

package lead_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// origin has a monotonic part, which times of a bubble of synctest have not. The clocks of all processes begin there.
var origin = time.Now()

// clock is the clock of one process. Like a machine's it has two parts, which jump apart: the monotonic one may stop
// while the machine is suspended, and the wall clock may be set.
type clock struct {
	began           time.Time // by time.Now
	percent         int       // how fast it runs
	mu              sync.Mutex
	wall, monotonic time.Duration // by how much the parts have jumped
}

func newClock() *clock { return &clock{began: time.Now(), percent: 100} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := origin.Add(time.Since(c.began)*time.Duration(c.percent)/100 + c.wall)
	*monotonic(&t) += int64(c.monotonic - c.wall) // Add has moved both parts
	return t
}

func (c *clock) jump(wall, monotonic time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall += wall
	c.monotonic += monotonic
}

// monotonic is the monotonic part of a time of time.Now. No function of package time sets it alone.
func monotonic(t *time.Time) *int64 {
	return &(*struct {
		wall uint64
		ext  int64
		loc  *time.Location
	})(unsafe.Pointer(t)).ext
}

func TestClock(t *testing.T) {
	synctest.Test(t, checkClock)
}

func checkClock(t *testing.T) {
	c := newClock()
	before := c.now()
	c.jump(time.Hour, 0)
	require.Zero(t, c.now().Sub(before))
	require.Equal(t, time.Hour, c.now().Round(0).Sub(before.Round(0)))
	c.jump(-2*time.Hour, 3*time.Hour)
	require.Equal(t, 3*time.Hour, c.now().Sub(before))
	require.Equal(t, -time.Hour, c.now().Round(0).Sub(before.Round(0)))
}

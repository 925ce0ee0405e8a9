package restcloud_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim/internal/restcloud"
)

// timers run their functions when the driver sleeps, regardless of the time.
type timers struct {
	mu  sync.Mutex
	due []func()
}

func (t *timers) after(_ time.Duration, do func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.due = append(t.due, do)
}

func (t *timers) sleep(ctx context.Context, _ time.Duration) error {
	t.mu.Lock()
	due := t.due
	t.due = nil
	t.mu.Unlock()
	for _, do := range due {
		do()
	}
	return ctx.Err()
}

// TestDriverMeetsEveryDuty: without a Bug, the driver passes the tests of package drivertest.
func TestDriverMeetsEveryDuty(t *testing.T) {
	drivertest.Run(t, drivertest.Suite{New: func(t *testing.T) drivertest.Setup {
		due := &timers{}
		cloud, faults := restcloud.New(due.after), &drivertest.Faults{}
		cloud.PageSize = 3
		server := httptest.NewServer(cloud)
		t.Cleanup(server.Close)
		again := func() driver.Driver {
			return &restcloud.Driver{URL: server.URL, Client: &http.Client{Transport: faults}, Sleep: due.sleep}
		}
		class := func(name, size, zone string) *machine.Class {
			c := restcloud.Class(object.Key{Name: name}, size)
			c.ProviderSpec = []byte(`{"Size":"` + size + `","Zone":"` + zone + `"}`)
			return c
		}
		return drivertest.Setup{
			Driver: again(), Again: again, Faults: faults, PageSize: cloud.PageSize,
			Class: class("small", "small", "blue"), Different: class("large", "large", "blue"),
			OtherCluster: class("green", "small", "green"), Invalid: class("none", "", "blue"),
			Count:     cloud.Count,
			Leftovers: cloud.Disks,
			Exhaust: func(context.Context) func() {
				cloud.SetFull(true)
				return func() { cloud.SetFull(false) }
			},
		}
	}})
}

package pooldriver_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
)

// Every kind of call gives its caller back when it hangs, and keeps others from its pool, or its class,
// until it returns. The late answer to a create is that of the next create for the same pool.
func TestOverduePoolCalls(t *testing.T) {
	pool := *aPool
	pool.UID = "uid"
	ask := wholeAsk
	ask.Pool = &pool
	for _, call := range machinepool.Calls() {
		synctest.Test(t, func(t *testing.T) {
			takes, made := time.Hour, 0
			calls := driver.NewCalls(driver.CallsOptions{
				Timeouts: driver.Timeouts{Default: time.Minute}, Grace: time.Second, Now: time.Now, After: time.After,
			})
			d := pooldriver.Track(&scriptedPool{answer: func(context.Context, machinepool.Call, any) (any, error) {
				made++
				wait := takes
				takes = 0
				<-time.After(wait)
				return wholePool(call), nil
			}}, calls)
			began := time.Now()
			_, err := askPool(t.Context(), d, call, &ask)
			if !errors.Is(err, driver.ErrOverdue) || codes.Of(err) != codes.DeadlineExceeded || time.Since(began) != time.Minute+time.Second {
				t.Fatalf("%s: %v after %s", call, err, time.Since(began))
			}
			if _, err := askPool(t.Context(), d, call, &ask); !errors.Is(err, driver.ErrUnderWay) || codes.Of(err) != codes.Aborted {
				t.Errorf("%s beside one that hangs: %v", call, err)
			}
			<-time.After(time.Hour)
			synctest.Wait()
			response, err := askPool(t.Context(), d, call, &ask)
			if err != nil || response == nil {
				t.Errorf("%s again: %v, %v", call, response, err)
			}
			want := 2
			if call == machinepool.CreatePool {
				want = 1
			}
			if made != want {
				t.Errorf("%s was made %d times, not %d", call, made, want)
			}
		})
	}
}

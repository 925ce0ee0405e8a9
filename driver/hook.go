package driver

import (
	"context"
	"time"

	"github.com/millwright-go/millwright/codes"
)

// Call is a call that has ended.
type Call struct {
	CallInfo
	Took time.Duration // never negative
	Code codes.Code    // of Err
	Err  error         // as the driver answered it; nil: OK
}

// Hook calls the function after for each call, when that has ended and before its answer is returned.
// now is the clock for Took. If now is nil, Took is zero. ctx is the call's, and may be over.
//
// after is called from several goroutines at once and must not block. What it sees depends on its
// place among the interceptors. Outside of Limit, Took includes the wait. Outside of Recover, it
// sees panics as INTERNAL; inside it does not see them.
func Hook(now func() time.Time, after func(ctx context.Context, c Call)) Interceptor {
	if now == nil {
		now = func() time.Time { return time.Time{} }
	}
	return func(ctx context.Context, call CallInfo, next func(context.Context) error) error {
		began := now()
		err := next(ctx)
		after(ctx, Call{CallInfo: call, Took: max(0, now().Sub(began)), Code: codes.Of(err), Err: err})
		return err
	}
}

package conformance

import (
	"context"
	"sync/atomic"

	"github.com/millwright-go/millwright/driver"
)

// Lose returns an interceptor that replaces the answer of the first successful call of that method by
// err.
func Lose(method driver.Method, err error) driver.Interceptor {
	var lost atomic.Bool
	return func(ctx context.Context, call driver.CallInfo, next func(context.Context) error) error {
		if failed := next(ctx); failed != nil || call.Method != method || lost.Swap(true) {
			return failed
		}
		return err
	}
}

package machinepool_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machinepool"
)

// An operator must act on a failure if a retry alone does not help.
func TestTerminal(t *testing.T) {
	for _, call := range append(machinepool.Calls(), machinepool.DeleteBootstrap, machinepool.RenewToken) {
		for _, code := range []codes.Code{codes.OK, codes.Canceled, codes.Unknown, codes.Unavailable, codes.Aborted, codes.DeadlineExceeded} {
			assert.False(t, call.Terminal(code), "%s %s", call, code)
		}
		for _, code := range []codes.Code{codes.InvalidArgument, codes.PermissionDenied, codes.Unimplemented, codes.Unauthenticated} {
			assert.True(t, call.Terminal(code), "%s %s", call, code)
		}
		assert.NotEqual(t, codes.None, call.Recovery(codes.Unimplemented).Class, "%s would spin", call)
	}
	assert.True(t, machinepool.ScalePool.Terminal(codes.ResourceExhausted))
	assert.True(t, machinepool.CreatePool.Terminal(codes.AlreadyExists))
	assert.False(t, machinepool.GetPoolStatus.Terminal(codes.NotFound), "there is none: it is made")
	assert.False(t, machinepool.ScalePool.Terminal(codes.NotFound), "it is looked for, and made again")
	assert.Len(t, machinepool.Calls(), 9)
	changing := 0
	for _, call := range append(machinepool.Calls(), machinepool.DeleteBootstrap, machinepool.RenewToken, "") {
		if call.Changing() {
			changing++
		}
	}
	assert.Equal(t, 6, changing)
	assert.True(t, machinepool.CreatePool.Changing() && !machinepool.GetPoolStatus.Changing())
}

package pooldriver_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/object"
)

// unlisted is a pool driver that names no groups.
type unlisted struct{ pooldriver.UnimplementedPools }

// TestListsPools: decorators always have the method. Whether groups can be listed depends on the
// driver.
func TestListsPools(t *testing.T) {
	wrapped := func(d pooldriver.Driver) pooldriver.Driver {
		return pooldriver.Validate(pooldriver.Intercept(pooldriver.Intercept(d, driver.Recover(nil)), driver.Limit(driver.Limits{})), nil)
	}
	listing := answeringPool(wholePool, nil)
	require.True(t, pooldriver.ListsPools(listing))
	require.True(t, pooldriver.ListsPools(wrapped(listing)))
	require.False(t, pooldriver.ListsPools(unlisted{}))
	require.False(t, pooldriver.ListsPools(wrapped(unlisted{})))
	_, err := askPool(t.Context(), wrapped(unlisted{}), machinepool.ListPools, &wholeAsk)
	require.Equal(t, codes.Unimplemented, codes.Of(err), "%v", err)
}

// TestListedGroupsAreBounded: entries that can't be acted upon are set aside, and cut if they are
// too long. The driver's own answer is left alone.
func TestListedGroupsAreBounded(t *testing.T) {
	long, pool := strings.Repeat("x", driver.MaxID+1), object.Key{Namespace: "fleet", Name: "web"}
	given := &pooldriver.ListPoolsResponse{Groups: map[string]object.Key{
		"fine": pool, "": {Name: "no-id"}, " ": {Name: "blank-id"}, "nameless": {Namespace: "fleet"}, long: pool,
		"long-name": {Name: long}, "long-namespace": {Namespace: long, Name: "web"},
	}}
	var cut []string
	d := pooldriver.Validate(answeringPool(func(machinepool.Call) any { return given }, nil), func(_ context.Context, s driver.CallInfo, whole string) {
		cut = append(cut, s.Method.String()+" "+whole)
	})
	a, err := askPool(t.Context(), d, machinepool.ListPools, &wholeAsk)
	require.NoError(t, err)
	got := a.(*pooldriver.ListPoolsResponse)
	require.Equal(t, map[string]object.Key{"fine": pool}, got.Groups)
	require.Len(t, got.Dropped, 6)
	for id, key := range got.Dropped {
		require.LessOrEqual(t, len(id), driver.MaxID)
		require.LessOrEqual(t, max(len(key.Name), len(key.Namespace)), driver.MaxName)
	}
	require.Len(t, cut, 2)
	require.Contains(t, strings.Join(cut, " "), "ListPools the answer has a group ID of size 1025")
	require.Len(t, given.Groups, 7, "the driver's own answer")
	require.Nil(t, given.Dropped)
}

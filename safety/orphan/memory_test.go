package orphan_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/orphan"
	"github.com/millwright-go/millwright/test/safetytest"
)

// hint asks for a listing of a class.
func (c *cloud) hint(class string) {
	c.hints = append(c.hints, orphan.Hint{Class: object.Key{Namespace: "fleet", Name: class}, At: c.Now})
}

// TestFailedDeleteWaits: a failed delete is not tried again earlier if the class is listed for another reason.
func TestFailedDeleteWaits(t *testing.T) {
	c := newCloud(t, "a")
	c.createVM("gone", "a")
	deletes := 0
	c.deleting = func(orphan.Delete) { deletes++ }
	c.answer = func(call, _ string) codes.Code {
		return map[string]codes.Code{"delete": codes.PermissionDenied}[call]
	}
	for range 19 { // until half a minute before the delete is tried again
		require.NoError(t, c.pass())
		c.hint("a")
		c.Now = c.Now.Add(30 * time.Second)
	}
	assert.Equal(t, 1, deletes)
	assert.Greater(t, c.lists, 10)
	for range 4 {
		require.NoError(t, c.pass())
		c.Now = c.Now.Add(30 * time.Second)
	}
	assert.Equal(t, 2, deletes)
}

// TestOrphanIsOrderedOnceAPass: an order that failed or was dropped is not repeated in the same pass.
func TestOrphanIsOrderedOnceAPass(t *testing.T) {
	class := object.Key{Name: "a"}
	o := &orphan.Observation{
		Classes: []orphan.Class{{Key: class, Asked: safetytest.Epoch, Listing: &orphan.Listing{
			Asked: safetytest.Epoch, Answered: safetytest.Epoch, VMs: map[string]string{"p://1": "m-1"},
		}}},
		Candidates: []orphan.Candidate{{Class: class, ProviderID: "p://1", Name: "m-1", Since: safetytest.Epoch.Add(-time.Minute)}},
		Read:       decision.Freshness{Began: safetytest.Epoch}, Owners: 1,
	}
	plan, err := orphan.Decide(o, safety.DefaultPolicy(), safetytest.Epoch)
	require.NoError(t, err)
	require.Len(t, plan.Delete, 1)
	o.Deleted = map[string]bool{"p://1": true}
	plan, err = orphan.Decide(o, safety.DefaultPolicy(), safetytest.Epoch)
	require.NoError(t, err)
	assert.Empty(t, plan.Delete)
	assert.Equal(t, o.Candidates, plan.Candidates, "the VM stays a candidate, since it may still exist")
	assert.Equal(t, safetytest.Epoch.Add(30*time.Second), plan.At, "the VM is checked again, but not at once")
}

// TestCandidatesAreKept: candidates of one class stay when another class is listed, and when a listing fails. They
// are dropped once the VM is no longer listed.
func TestCandidatesAreKept(t *testing.T) {
	c := newCloud(t, "a", "b")
	v := c.createVM("gone", "a")
	require.NoError(t, c.pass())
	require.Len(t, c.candidates, 1)
	since := c.candidates[0].Since

	c.known["b"].Asked = time.Time{}
	c.Now = c.Now.Add(10 * time.Second)
	require.NoError(t, c.pass())
	require.Len(t, c.candidates, 1)
	assert.Equal(t, since, c.candidates[0].Since)

	c.answer = func(string, string) codes.Code { return codes.Unavailable }
	c.Now = c.Now.Add(20 * time.Second)
	require.NoError(t, c.pass())
	require.Len(t, c.candidates, 1)
	assert.Equal(t, since, c.candidates[0].Since)

	c.answer, v.gone = nil, c.Now
	c.Now = c.plan.At
	require.NoError(t, c.pass())
	assert.Empty(t, c.candidates, "another program has deleted the VM")

	c.createVM("gone", "a")
	c.known["a"].Asked = time.Time{}
	require.NoError(t, c.pass())
	require.Len(t, c.candidates, 1)
	c.classes = []string{"b"}
	require.NoError(t, c.pass())
	assert.Empty(t, c.candidates, "the class of the candidate is gone")
}

// TestCandidateAfterAClockIsSetBack: if the clock is set back, an orphan must be seen twice again before it is
// deleted.
func TestCandidateAfterAClockIsSetBack(t *testing.T) {
	c := newCloud(t, "a")
	c.createVM("gone", "a")
	c.candidates = []orphan.Candidate{{Class: object.Key{Namespace: "fleet", Name: "a"}, ProviderID: "p://1", Name: "gone", Since: safetytest.Epoch.Add(time.Hour)}}
	require.NoError(t, c.pass())
	c.wait(1)
	assert.Empty(t, c.left())
}

// TestOldOutOfRangeAnswerDoesNotCount: an answer to GetMachineStatus from before the last failed create does not
// count, because that create may still be under way.
func TestOldOutOfRangeAnswerDoesNotCount(t *testing.T) {
	for _, late := range []bool{false, true} {
		c := newCloud(t, "a")
		c.createVM("m-1", "a")
		m := c.addMachine("m-1", "a", machine.PhaseNew, "")
		outOfRange(m, safetytest.Epoch.Add(time.Second))
		m.Status.LastOperation.Stage = machine.StageCreateVM
		hint := orphan.Hint{Class: object.Key{Namespace: "fleet", Name: "a"}, At: safetytest.Epoch, Several: "m-1"}
		if late {
			hint.At = safetytest.Epoch.Add(time.Second)
		}
		c.hints = append(c.hints, hint)
		c.Now = safetytest.Epoch.Add(2 * time.Second)
		c.firstPass()
		c.wait(1)
		assert.Equal(t, late, len(c.left()) == 0)
	}
}

package deployment_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/object"
)

// A deployment reports what slows its sets: the new set's condition first, then the oldest one's,
// of those that stay. It writes once when that begins, changes or ends, and not between (P28).
func TestSlowedSetsAreTold(t *testing.T) {
	for _, typ := range []string{deployment.ConditionCreationSlowed, deployment.ConditionReplacementSlowed} {
		o := settledObservation(t, 2)
		d := o.Deployment
		old, older := ownSet(d, "web-old", 0), ownSet(d, "web-older", 0)
		old.Set.Spec.Template.Spec.Class.Name, older.Set.Spec.Template.Spec.Class.Name = "tiny", "micro"
		old.Set.Revision, older.Set.Revision = 0, 0
		old.Set.CreatedAt, older.Set.CreatedAt = d.CreatedAt.Add(-time.Hour), d.CreatedAt.Add(-2*time.Hour)
		o.Sets = append(o.Sets, old, older)
		tell := func(child deployment.Children, reason string, status object.ConditionStatus) {
			s := child.Set.Clone()
			s.Status.Conditions = []object.Condition{{Type: typ, Status: status, Reason: reason, Message: "of " + s.Name, Since: begin}}
			for i := range o.Sets {
				if o.Sets[i].Set.UID == s.UID {
					o.Sets[i].Set = s
				}
			}
		}
		// told returns the condition after everything was written.
		told := func(at time.Time) *object.Condition {
			status := statusOf(t, decide(t, o, at))
			o.Deployment = o.Deployment.Clone()
			o.Deployment.Status = status
			require.Nil(t, decide(t, o, at.Add(time.Minute)).Write, "told twice")
			return object.FindCondition(status.Conditions, typ)
		}

		tell(old, "Old", object.True)
		require.Equal(t, &object.Condition{Type: typ, Status: object.True, Reason: "Old", Message: "of web-old", Since: begin.Add(time.Hour).Truncate(time.Second)}, told(begin.Add(time.Hour)))
		tell(older, "Older", object.True)
		require.Equal(t, "Older", told(begin.Add(2*time.Hour)).Reason)
		tell(o.Sets[0], "New", object.False)
		require.Nil(t, decide(t, o, begin.Add(3*time.Hour)).Write, "false is nothing")
		tell(o.Sets[0], "New", object.True)
		c := told(begin.Add(3 * time.Hour))
		require.Equal(t, "of "+o.Sets[0].Set.Name, c.Message)
		require.Equal(t, begin.Add(time.Hour).Truncate(time.Second), c.Since, "since it has been slowed")
		for _, child := range o.Sets {
			tell(child, "", object.False)
		}
		require.Nil(t, told(begin.Add(4*time.Hour)))

		going := o.Sets[1]
		tell(going, "Going", object.True)
		gone := o.Sets[1].Set.Clone()
		gone.DeletedAt = begin
		o.Sets[1].Set = gone
		require.Nil(t, decide(t, o, begin.Add(5*time.Hour)).Write, "a set that goes has no trouble any more")
	}
}

package drain_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/object"
)

// forecast returns how a drain of the node would go, as text.
func forecast(t *testing.T, s *shell) (*drain.Forecast, string) {
	t.Helper()
	f, err := drain.Predict(s.observe(), s.policy, drain.Assumptions{}, s.now)
	require.NoError(t, err)
	require.True(t, f.Done)
	return f, drain.Explain(f)
}

// A forecast has pods that tolerate the cordon come back, as a drain finds them (P49): it says how
// often they are told to go, and that they stay in the end, with their volumes.
func TestForecastOfPodsThatComeBack(t *testing.T) {
	for _, kind := range []string{"ReplicaSet", "StatefulSet"} {
		s := newShell(t)
		s.add("op", s.volume("vol-1"), func(p *pod) { p.ToleratesCordon, p.returns, p.Owner.Kind = true, true, kind })
		f, text := forecast(t, s)
		plan := s.run(s.now.Add(time.Hour))
		require.True(t, plan.Done)
		assert.InDelta(t, s.now.Sub(epoch).Seconds(), f.Took.Seconds(), 2)
		assert.Contains(t, text, "1 pod, 2 evicted, 2 left alone;", "the pod, and its volume")
		assert.Contains(t, text, "came to the node in spite of the cordon")
		assert.Contains(t, text, "volume vol-1 stays attached here: default/op uses it and is left alone")
		assert.Empty(t, f.Left)
		assert.Equal(t, []string{"vol-1"}, s.attachmentsHere())
		assert.Equal(t, drain.ReasonCameBack, plan.Blocked[0].Why.Reason)
	}
}

// A forecast waits for what is attached to the node and no pod uses (P51), also if only the node
// knows it.
func TestForecastOfVolumesOfNobody(t *testing.T) {
	s := newShell(t)
	s.volumes = append(s.volumes, &drain.Volume{Name: "vol-x", Claim: object.Key{Namespace: "default", Name: "gone"}, Handle: "vol-x"})
	s.attachments = append(s.attachments, &drain.Attachment{Name: "x", Volume: "vol-x", Node: here, Attached: true})
	f, text := forecast(t, s)
	assert.Equal(t, 10*time.Second, f.Took)
	assert.Contains(t, text, "volume vol-x is still attached here, and no pod uses it; waited for at most 2m0s")
	s.noAttachments, s.attached = true, []string{"kubernetes.io/csi/disk.example^vol-x"}
	f, text = forecast(t, s)
	assert.Equal(t, 10*time.Second, f.Took)
	assert.Contains(t, text, "vol-x is still attached here")
	s.stays = true
	f, _ = forecast(t, s)
	assert.Zero(t, f.Took, "the VM stays")
}

package drain_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/object"
)

var forecasts = map[string]func(*shell){
	"quiet": func(s *shell) { s.add("web"); s.add("api", func(p *pod) { p.Grace = 2 * time.Minute }) },
	"empty": func(*shell) {},
	"mixed": func(s *shell) {
		s.policy.Timeout = 30 * time.Minute
		s.policy.Rules = []drain.Rule{{Selector: labelled("log"), Behaviour: drain.Skip}}
		s.protect("web", 2, 0)
		for _, n := range []string{"web-1", "web-2", "web-3"} {
			s.add(n, func(p *pod) { p.Labels["app"] = "web" })
		}
		s.protect("mq", 1, 0)
		s.add("mq")
		s.protect("api", 0, 0)
		s.protect("api", 0, 0, func(b *budget) { b.Name = "api-too" })
		s.add("api")
		s.add("db-1", s.volume("vol-1"), func(p *pod) { p.Priority = 10 })
		s.add("db-2", s.volume("vol-2"))
		s.add("log")
		s.add("kube-proxy", func(p *pod) { p.Owner.Kind = drain.DaemonSet })
		s.add("etcd", func(p *pod) { p.Mirror = true })
		s.add("job", func(p *pod) { p.Finished = true })
		s.add("batch", func(p *pod) { p.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "true"} })
		gone := s.add("gone")
		s.tell(gone, gone.Grace)
	},
	"forced": func(s *shell) {
		s.forced = true
		s.protect("mq", 1, 0)
		s.add("mq")
		s.add("web")
	},
	"endless": func(s *shell) {
		s.policy.Timeout = object.Off
		s.protect("mq", 1, 0)
		s.add("mq")
	},
}

func TestExplain(t *testing.T) {
	for name, fill := range forecasts {
		t.Run(name, func(t *testing.T) {
			s := newShell(t)
			fill(s)
			f, err := drain.Predict(s.observe(), s.policy, drain.Assumptions{}, s.now)
			require.NoError(t, err)
			path := filepath.Join("testdata", "explain", name+".txt")
			if *update {
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
				require.NoError(t, os.WriteFile(path, []byte(drain.Explain(f)), 0o644))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err, "go test ./drain -update writes it")
			assert.Equal(t, string(want), drain.Explain(f))
		})
	}
}

// A forecast names each pod, changes nothing in its arguments, and follows the rules of the drains
// it predicts.
func TestForecastOfAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newShell(t)
		anyCluster(t, s)
		s.resolved = rapid.Bool().Draw(t, "resolved")
		s.forced = rapid.IntRange(0, 3).Draw(t, "forced") == 0
		for _, p := range s.pods {
			if rapid.IntRange(0, 5).Draw(t, "going") == 0 && !p.Finished {
				s.tell(p, p.Grace)
			}
		}
		o, same := s.observe(), s.observe()
		f, err := drain.Predict(o, s.policy, drain.Assumptions{}, s.now)
		require.NoError(t, err)
		require.Equal(t, same, o)
		require.True(t, f.Done)
		text := drain.Explain(f)
		require.NotContains(t, text, "{")
		for _, p := range s.pods {
			require.True(t, strings.Contains(text, p.Key.String()), "%s is not named in\n%s", p.Key, text)
		}
		for i := range f.Steps {
			require.True(t, i == 0 || f.Steps[i].At >= f.Steps[i-1].At, "steps are in the order of time")
		}
	})
}

package main

import (
	"os"
	"testing"
	"time"

	"github.com/millwright-go/millwright/drain"
)

// FuzzDecode: no text makes the reader, the conversion or the forecast panic, and there is always an
// error or a forecast with a text.
func FuzzDecode(f *testing.F) {
	for _, file := range []string{"testdata/shop.yaml", "testdata/pair.json"} {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	for _, text := range []string{
		"", "---\n---\n", "{}", "null", "kind: PodList\nitems: [{metadata: {name: a}, spec: {nodeName: n}}]",
		"kind: Pod\nmetadata: {name: a, deletionTimestamp: 0001-01-01T00:00:00Z}\nspec: {nodeName: n, terminationGracePeriodSeconds: 9223372036854775807}",
		`{"kind":"ListList","items":[{"items":[]}]}`, "a: &a [*a]",
	} {
		f.Add([]byte(text))
	}
	now := time.Date(2026, 5, 4, 6, 30, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text []byte) {
		c := &cluster{}
		if err := c.decode(text); err != nil {
			if oneLine(err) == "" {
				t.Fatal("an error without a text")
			}
			return
		}
		for _, p := range c.pods {
			o, err := c.observation(p.Spec.NodeName)
			if err != nil {
				continue
			}
			forecast, err := drain.Predict(o, drain.DefaultPolicy(), drain.Assumptions{Limit: time.Hour}, now)
			if err != nil {
				t.Fatal(err)
			}
			if drain.Explain(forecast) == "" {
				t.Fatal("a forecast without a text")
			}
		}
	})
}

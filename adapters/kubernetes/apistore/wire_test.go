package apistore_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"

	"k8s.io/client-go/rest"
)

// wire is the connection of a client to a real server. It records requests, and can be broken.
type wire struct {
	next http.RoundTripper

	mu       sync.Mutex
	requests []string // "GET", "LIST", "WATCH", "PATCH status {…}"
	expire   int      // how many of the next watches are answered with 410
	down     bool     // all connections are refused
	streams  []io.Closer

	watchesBlocked bool // lists and watches are refused
}

// wired returns access to the server through a wire.
func wired(t *testing.T) (*rest.Config, *wire) {
	t.Helper()
	w := &wire{}
	config := rest.CopyConfig(server.Config)
	config.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
		w.next = next
		return w
	}
	return config, w
}

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	watches := r.URL.Query().Get("watch") != ""
	expired, down, err := w.note(r, watches)
	switch {
	case err != nil:
		return nil, err
	case down:
		return nil, syscall.ECONNREFUSED
	case expired:
		return expiredAnswer(r), nil
	}
	answer, err := w.next.RoundTrip(r)
	if err == nil && watches {
		w.mu.Lock()
		w.streams = append(w.streams, answer.Body)
		w.mu.Unlock()
	}
	return answer, err
}

func (w *wire) note(r *http.Request, watches bool) (expired, down bool, err error) {
	what := r.Method
	lists := r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/things")
	switch {
	case watches:
		what = "WATCH"
	case lists:
		what = "LIST"
	}
	if strings.HasSuffix(r.URL.Path, "/status") {
		what += " status"
	}
	if r.Body != nil && r.Method == http.MethodPatch {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return false, false, err
		}
		r.Body = io.NopCloser(bytes.NewReader(text))
		what += " " + string(text)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests = append(w.requests, what)
	if watches && w.expire > 0 {
		w.expire--
		return true, w.down, nil
	}
	return false, w.down || lists && w.watchesBlocked, nil
}

// expiredAnswer is the answer to a watch from a version that the server has forgotten.
func expiredAnswer(r *http.Request) *http.Response {
	const body = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"too old resource version"}`
	return &http.Response{
		Status: "410 Gone", StatusCode: http.StatusGone, Proto: r.Proto, ProtoMajor: r.ProtoMajor,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r,
	}
}

// taken returns the requests since the last call, except lists and watches.
func (w *wire) taken() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, r := range w.requests {
		if r != "WATCH" && r != "LIST" {
			out = append(out, r)
		}
	}
	w.requests = nil
	return out
}

// cut ends all watches. The next expired watches are answered with 410. If down is true, all
// connections are refused from now on.
func (w *wire) cut(expired int, down bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expire, w.down = expired, down
	for _, s := range w.streams {
		_ = s.Close()
	}
	w.streams = nil
}

// blockWatches ends all watches, and refuses further watches and lists.
func (w *wire) blockWatches() {
	w.mu.Lock()
	w.watchesBlocked = true
	w.mu.Unlock()
	w.cut(0, false)
}

func (w *wire) restore() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down, w.watchesBlocked = false, false
}

package drivertest

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// restServer and restDisk are what a restCloud has.
type (
	restServer struct{ ID, Name, UID, Size, Zone, Disk, State string }
	restDisk   struct{ ID, Name string }
)

// restCloud is a provider with an HTTP API. Names need not be unique, but a token makes what is made
// with it once. Servers are made and removed while one looks: a server that was asked for twice runs,
// or is gone.
type restCloud struct {
	URL  string
	size int // of a page of servers

	mu      sync.Mutex
	servers map[string]*restServer
	disks   map[string]*restDisk
	tokens  map[string]string // the ID of what was made with each
	number  int
	full    bool // no server is made
}

func newRestCloud(t *testing.T) *restCloud {
	c := &restCloud{size: 3, servers: map[string]*restServer{}, disks: map[string]*restDisk{}, tokens: map[string]string{}}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	c.URL = server.URL
	return c
}

func (c *restCloud) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.servers)
}

// exhaust uses up the quota of servers.
func (c *restCloud) exhaust(context.Context) (restore func()) {
	set := func(full bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.full = full
	}
	set(true)
	return func() { set(false) }
}

// restAnswer is the body of each answer, in the parts that it has.
type restAnswer struct {
	Error   string
	Server  *restServer
	Servers []restServer
	Next    int // the page after this one; 0: this is the last one
	Disk    *restDisk
	Disks   []restDisk
}

func (c *restCloud) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kind, id, _ := strings.Cut(strings.TrimPrefix(q.URL.Path, "/"), "/")
	var status int
	var a restAnswer
	switch kind {
	case "servers":
		status, a = c.serveServers(q, id)
	case "disks":
		status, a = c.serveDisks(q, id)
	default:
		status = http.StatusNotFound
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(a)
}

func (c *restCloud) serveServers(q *http.Request, id string) (int, restAnswer) {
	switch {
	case q.Method == http.MethodPost:
		return c.makeServer(q)
	case id == "":
		return http.StatusOK, c.page(q.URL.Query())
	case c.servers[id] == nil:
		return http.StatusNotFound, restAnswer{Error: "no such server"}
	}
	s := c.servers[id]
	switch {
	case q.Method == http.MethodDelete:
		s.State = "ending"
	case q.Method == http.MethodPatch:
		_ = json.NewDecoder(q.Body).Decode(s)
	case s.State == "ending":
		delete(c.servers, id)
	default:
		s.State = "running"
	}
	shown := *s
	return http.StatusOK, restAnswer{Server: &shown}
}

func (c *restCloud) makeServer(q *http.Request) (int, restAnswer) {
	s := &restServer{}
	_ = json.NewDecoder(q.Body).Decode(s)
	token := q.Header.Get("Token")
	if made := c.servers[c.tokens[token]]; made != nil && token != "" {
		shown := *made
		return http.StatusOK, restAnswer{Server: &shown}
	}
	if c.full {
		return http.StatusForbidden, restAnswer{Error: "the quota of servers is used up"}
	}
	s.ID, s.State = c.newID("s"), "booting"
	c.servers[s.ID], c.tokens[token] = s, s.ID
	shown := *s
	return http.StatusCreated, restAnswer{Server: &shown}
}

func (c *restCloud) newID(prefix string) string {
	c.number++
	return prefix + strconv.Itoa(c.number)
}

// page returns the servers of a zone and, if one is given, of a name.
func (c *restCloud) page(q url.Values) (a restAnswer) {
	var all []restServer
	for _, s := range c.servers {
		if s.Zone == q.Get("zone") && (q.Get("name") == "" || s.Name == q.Get("name")) {
			all = append(all, *s)
		}
	}
	slices.SortFunc(all, func(a, b restServer) int { return cmp.Or(len(a.ID)-len(b.ID), cmp.Compare(a.ID, b.ID)) })
	n, _ := strconv.Atoi(q.Get("page"))
	from := min(n*c.size, len(all))
	to := min(from+c.size, len(all))
	if to < len(all) {
		a.Next = n + 1
	}
	a.Servers = all[from:to]
	return a
}

func (c *restCloud) serveDisks(q *http.Request, id string) (int, restAnswer) {
	switch {
	case q.Method == http.MethodPost:
		d := &restDisk{}
		_ = json.NewDecoder(q.Body).Decode(d)
		token := q.Header.Get("Token")
		if made := c.disks[c.tokens[token]]; made != nil && token != "" {
			return http.StatusOK, restAnswer{Disk: made}
		}
		d.ID = c.newID("d")
		c.disks[d.ID], c.tokens[token] = d, d.ID
		return http.StatusCreated, restAnswer{Disk: d}
	case q.Method == http.MethodDelete && c.disks[id] != nil:
		delete(c.disks, id)
		return http.StatusOK, restAnswer{}
	case q.Method == http.MethodGet:
		var of []restDisk
		for _, d := range c.disks {
			if d.Name == q.URL.Query().Get("name") {
				of = append(of, *d)
			}
		}
		return http.StatusOK, restAnswer{Disks: of}
	}
	return http.StatusNotFound, restAnswer{Error: "no such disk"}
}

// leftovers names the disks.
func (c *restCloud) leftovers() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for _, id := range slices.Sorted(maps.Keys(c.disks)) {
		all = append(all, "disk "+id)
	}
	return all
}

package restcloud

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Server is a VM of a Cloud.
type Server struct {
	ID, Name, UID, Size, Zone, Disk string
	State                           string // "creating", "running" or "ending"
}

// Disk is a volume that a Server boots from.
type Disk struct{ ID, Name string }

// Cloud is a provider in memory that serves HTTP. Servers are created and removed in the background.
// Names need not be unique. A POST with a Token header that was used before creates nothing, and returns
// what was created with that token. New makes it. It is safe for concurrent use.
//
//	POST, GET   /servers       POST: the server to create; GET: ?zone=, ?name=, ?page=
//	GET, PATCH  /servers/ID
//	DELETE      /servers/ID
//	POST, GET   /disks         POST: the disk to create; GET: ?name=
//	DELETE      /disks/ID
type Cloud struct {
	// Quota is how many servers there may be. Creating more is answered with 403. Zero: any number.
	Quota int
	// PageSize is how many servers a page of a list has. Zero: 5.
	PageSize int
	// Boot is the time from a server's creation until it is running, and End the time from its deletion
	// until it is gone.
	Boot, End time.Duration

	after func(time.Duration, func())

	mu      sync.Mutex
	full    bool
	number  int
	servers map[string]*Server
	disks   map[string]*Disk
	tokens  map[string]string // the ID of what was created with each token
}

// New returns an empty cloud. after must call a function when a time has passed, as time.AfterFunc does.
func New(after func(time.Duration, func())) *Cloud {
	return &Cloud{
		Boot: 10 * time.Second, End: 10 * time.Second, after: after,
		servers: map[string]*Server{}, disks: map[string]*Disk{}, tokens: map[string]string{},
	}
}

// Count returns how many servers there are.
func (c *Cloud) Count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.servers)
}

// Twins returns the names that more than one server has, not counting those that are ending.
func (c *Cloud) Twins() (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := map[string]int{}
	for _, s := range c.inOrder() {
		if s.State == "ending" {
			continue
		}
		if n[s.Name]++; n[s.Name] == 2 {
			names = append(names, s.Name)
		}
	}
	return names
}

// SetFull makes the cloud refuse to create servers as if the quota were used up, or ends that.
func (c *Cloud) SetFull(full bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.full = full
}

// Disks describes the existing disks.
func (c *Cloud) Disks() (all []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(c.disks)) {
		all = append(all, "disk "+id+" of "+c.disks[id].Name)
	}
	return all
}

// inOrder returns the servers, the oldest first.
func (c *Cloud) inOrder() []*Server {
	return slices.SortedFunc(maps.Values(c.servers), func(a, b *Server) int {
		return cmp.Or(len(a.ID)-len(b.ID), cmp.Compare(a.ID, b.ID))
	})
}

// answer is the body of each answer. Most fields are empty.
type answer struct {
	Error   string   `json:",omitempty"`
	Server  *Server  `json:",omitempty"`
	Servers []Server `json:",omitempty"`
	Next    int      `json:",omitempty"` // number of the next page; 0: there is none
	Disk    *Disk    `json:",omitempty"`
	Disks   []Disk   `json:",omitempty"`
}

// ServeHTTP implements http.Handler.
func (c *Cloud) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	status, a := http.StatusNotFound, answer{Error: "there is no such path"}
	switch kind, id, _ := strings.Cut(strings.TrimPrefix(q.URL.Path, "/"), "/"); kind {
	case "servers":
		status, a = c.serveServers(q, id)
	case "disks":
		status, a = c.serveDisks(q, id)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(a)
}

func (c *Cloud) serveServers(q *http.Request, id string) (int, answer) {
	s := c.servers[id]
	switch {
	case q.Method == http.MethodPost && id == "":
		return c.makeServer(q)
	case q.Method == http.MethodGet && id == "":
		return http.StatusOK, c.page(q.URL.Query())
	case s == nil:
		return http.StatusNotFound, answer{Error: "there is no such server"}
	case q.Method == http.MethodDelete:
		s.State = "ending"
		c.after(c.End, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			delete(c.servers, id)
		})
	case q.Method == http.MethodPatch:
		var change struct{ UID string }
		if json.NewDecoder(q.Body).Decode(&change) != nil {
			return http.StatusBadRequest, answer{Error: "the body is no JSON"}
		}
		s.UID = change.UID
	}
	shown := *s
	return http.StatusOK, answer{Server: &shown}
}

func (c *Cloud) makeServer(q *http.Request) (int, answer) {
	s := &Server{}
	if json.NewDecoder(q.Body).Decode(s) != nil {
		return http.StatusBadRequest, answer{Error: "the body is no JSON"}
	}
	if made := c.servers[c.tokens[q.Header.Get("Token")]]; made != nil {
		shown := *made
		return http.StatusOK, answer{Server: &shown}
	}
	if c.full || c.Quota > 0 && len(c.servers) >= c.Quota {
		return http.StatusForbidden, answer{Error: "the quota of servers is used up"}
	}
	s.ID, s.State = c.newID(q, "s"), "creating"
	c.servers[s.ID] = s
	c.after(c.Boot, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if s.State == "creating" {
			s.State = "running"
		}
	})
	shown := *s
	return http.StatusCreated, answer{Server: &shown}
}

// newID returns an ID for what a request creates, and remembers the request's token.
func (c *Cloud) newID(q *http.Request, prefix string) string {
	c.number++
	id := prefix + strconv.Itoa(c.number)
	if token := q.Header.Get("Token"); token != "" {
		c.tokens[token] = id
	}
	return id
}

// page returns a page of the servers of a zone and, if a name is given, with that name.
func (c *Cloud) page(q url.Values) (a answer) {
	var all []Server
	for _, s := range c.inOrder() {
		if s.Zone == q.Get("zone") && (q.Get("name") == "" || s.Name == q.Get("name")) {
			all = append(all, *s)
		}
	}
	n, _ := strconv.Atoi(q.Get("page"))
	size := cmp.Or(c.PageSize, 5)
	from := min(max(n, 0)*size, len(all))
	to := min(from+size, len(all))
	if to < len(all) {
		a.Next = n + 1
	}
	a.Servers = all[from:to]
	return a
}

func (c *Cloud) serveDisks(q *http.Request, id string) (int, answer) {
	switch {
	case q.Method == http.MethodPost && id == "":
		d := &Disk{}
		if json.NewDecoder(q.Body).Decode(d) != nil {
			return http.StatusBadRequest, answer{Error: "the body is no JSON"}
		}
		if made := c.disks[c.tokens[q.Header.Get("Token")]]; made != nil {
			return http.StatusOK, answer{Disk: made}
		}
		d.ID = c.newID(q, "d")
		c.disks[d.ID] = d
		return http.StatusCreated, answer{Disk: d}
	case q.Method == http.MethodGet && id == "":
		var a answer
		for _, key := range slices.Sorted(maps.Keys(c.disks)) {
			if d := c.disks[key]; d.Name == q.URL.Query().Get("name") {
				a.Disks = append(a.Disks, *d)
			}
		}
		return http.StatusOK, a
	case q.Method == http.MethodDelete && c.disks[id] != nil:
		delete(c.disks, id)
		return http.StatusOK, answer{}
	}
	return http.StatusNotFound, answer{Error: "there is no such disk"}
}

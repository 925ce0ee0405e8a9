// Package heartbeat is a target cluster in its simplest form: machines join it by sending
// heartbeats over a unix socket. A machine that sends heartbeats is a Ready node. The state of one
// that has fallen silent is unknown.
package heartbeat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"
)

// MaxSocketPath is how many bytes every supported system allows for the path of a
// socket.
const MaxSocketPath = 103

// Join is what a machine must know to become a node. It is sent as the machine's user data and
// holds a secret.
type Join struct {
	Socket string `json:"socket"`
	Token  string `json:"token"`
	Node   string `json:"node"` // the node's name
}

// UserData returns what ParseJoin reads. Placeholders such as <<MACHINE_NAME>> stay as they are,
// and the library fills them in.
func (j Join) UserData() []byte {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(j) // three strings
	return bytes.TrimSpace(text.Bytes())
}

// ParseJoin reads user data. It returns false if the data are not for such a cluster.
func ParseJoin(userData []byte) (Join, bool) {
	var j Join
	err := json.Unmarshal(userData, &j)
	return j, err == nil && j.Socket != "" && j.Node != ""
}

// beat is one heartbeat on its way.
type beat struct {
	Token      string `json:"token"`
	Node       string `json:"node"`
	ProviderID string `json:"providerID"`
}

// Sender sends one machine's heartbeats. It is not safe for concurrent use.
type Sender struct {
	socket  string
	message []byte
	conn    *net.UnixConn // or nil
}

// NewSender returns a sender for a machine with that provider ID.
func NewSender(j Join, providerID string) (*Sender, error) {
	if len(j.Socket) > MaxSocketPath {
		return nil, fmt.Errorf("the path of socket %s is longer than %d bytes", j.Socket, MaxSocketPath)
	}
	message, err := json.Marshal(beat{Token: j.Token, Node: j.Node, ProviderID: providerID})
	if err != nil {
		return nil, err
	}
	return &Sender{socket: j.Socket, message: message}, nil
}

// Send sends one heartbeat and waits for at most patience. After an error the next one connects
// again.
func (s *Sender) Send(patience time.Duration) error {
	if s.conn == nil {
		conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: s.socket, Net: "unixgram"})
		if err != nil {
			return err
		}
		s.conn = conn
	}
	err := s.conn.SetWriteDeadline(time.Now().Add(patience))
	if err == nil {
		_, err = s.conn.Write(s.message)
	}
	if err != nil {
		return errors.Join(err, s.Close())
	}
	return nil
}

// Close closes the connection, if there is one.
func (s *Sender) Close() error {
	if s.conn == nil {
		return nil
	}
	err := s.conn.Close()
	s.conn = nil
	return err
}

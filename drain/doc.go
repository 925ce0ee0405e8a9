// Package drain decides how a node is emptied.
package drain

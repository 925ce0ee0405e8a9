package report

import (
	"bytes"
	"encoding/xml"
	"strconv"
	"strings"
	"time"
)

// canvas draws a plot of machines over time as SVG.
type canvas struct {
	out                      bytes.Buffer
	left, right, top, bottom float64 // edges of the plot
	until                    time.Duration
	most                     int64  // machines at the upper edge
	zero                     string // label of the time axis at its beginning
}

func (c *canvas) x(at time.Duration) float64 {
	return c.left + (c.right-c.left)*float64(min(max(at, 0), c.until))/float64(c.until)
}

func (c *canvas) y(machines int64) float64 {
	return c.bottom - (c.bottom-c.top)*float64(min(machines, c.most))/float64(c.most)
}

// printf writes SVG: %s is text to be escaped, %f a coordinate, %d a number.
func (c *canvas) printf(format string, args ...any) {
	for len(args) > 0 {
		at := strings.IndexByte(format, '%')
		if at < 0 {
			break
		}
		c.out.WriteString(format[:at])
		c.write(args[0])
		format, args = format[at+2:], args[1:]
	}
	c.out.WriteString(format)
}

func (c *canvas) write(arg any) {
	switch arg := arg.(type) {
	case string:
		_ = xml.EscapeText(&c.out, []byte(arg)) // a buffer takes everything
	case float64:
		c.out.WriteString(coordinate(arg))
	case int:
		c.out.WriteString(strconv.Itoa(arg))
	}
}

// coordinate returns a number with one decimal at most.
func coordinate(v float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
}

// area draws the area between two lines of numbers. Each number holds from its time on.
func (c *canvas) area(class string, after []time.Duration, lower, upper []int64) {
	c.printf(`<path class="%s" d="M%f %f`, class, c.x(0), c.y(upper[0]))
	c.steps(after, upper)
	last := len(after) - 1
	c.printf("H%fV%f", c.x(c.until), c.y(lower[last]))
	for i := last; i > 0; i-- {
		if lower[i] != lower[i-1] {
			c.printf("H%fV%f", c.x(after[i]), c.y(lower[i-1]))
		}
	}
	c.printf("H%fZ\"/>\n", c.x(0))
}

// line draws a path along numbers. Each number holds from its time on.
func (c *canvas) line(class string, after []time.Duration, numbers []int64) {
	c.printf(`<path class="%s" d="M%f %f`, class, c.x(0), c.y(numbers[0]))
	c.steps(after, numbers)
	c.printf("H%f\"/>\n", c.x(c.until))
}

// steps continues a path from the first number.
func (c *canvas) steps(after []time.Duration, numbers []int64) {
	for i := 1; i < len(after); i++ {
		if numbers[i] != numbers[i-1] {
			c.printf("H%fV%f", c.x(after[i]), c.y(numbers[i]))
		}
	}
}

// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

// Detail is a part of a [Status] that a controller adds by [Shows].
type Detail struct {
	Title string
	Lines []string
}

// shown is what Shows adds.
type shown struct {
	title string
	lines func(limit int) []string
}

// Shows adds lines under a title to the debug pages of the loop: what the controller itself keeps
// beside the queue, such as operations in progress. lines returns up to limit lines. It may be
// called at any time, from any goroutine, and must be quick.
func Shows(title string, lines func(limit int) []string) Option {
	return func(c *core) { c.shows = append(c.shows, shown{title, lines}) }
}

// details returns what the controller shows, with up to limit lines of each part.
func (c *core) details(limit int) (all []Detail) {
	for _, s := range c.shows {
		all = append(all, Detail{s.title, s.lines(limit)})
	}
	return all
}

// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// moments are the times at which something appears, except the beginning.
func (p picture) moments() []time.Duration {
	var all []time.Duration
	for _, pane := range p.panes {
		for _, l := range pane.lines {
			parts := 1
			if l.typing > 0 {
				parts = len(words(runs(l.cells)))
			}
			for i := range parts {
				all = append(all, l.at+time.Duration(i)*l.typing)
			}
		}
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(at time.Duration) bool { return at == 0 })
}

// class is the class of what appears at a time.
func (d *drawing) class(at time.Duration) string {
	i, found := slices.BinarySearch(d.moments, at)
	if !found {
		return ""
	}
	return fmt.Sprintf("m%d", i)
}

// animation are the rules by which each class appears at its time, again and again. Without
// them everything is visible: this is what readers see whose viewer plays nothing, or who
// prefer reduced motion.
func animation(moments []time.Duration, lasts time.Duration) string {
	if len(moments) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("@media (prefers-reduced-motion:no-preference){\n")
	fmt.Fprintf(&b, "[class*=m]{animation:%.1fs step-end infinite}\n", lasts.Seconds())
	for i, at := range moments {
		fmt.Fprintf(&b, ".m%d{animation-name:m%d}@keyframes m%d{0%%{opacity:0}%.2f%%{opacity:1}}\n", i, i, i, 100*at.Seconds()/lasts.Seconds())
	}
	b.WriteString("}\n")
	return b.String()
}

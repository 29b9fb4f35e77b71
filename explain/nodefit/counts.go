// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodefit

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Rules about which this package decides. The message of the scheduler may have others.
var rules = []string{Unschedulable, Tainted, OtherAffinity, PortsTaken, TooManyPods, VolumeAffinity}

// Decides reports whether the package checks a rule.
func Decides(rule string) bool {
	return slices.Contains(rules, rule) || strings.HasPrefix(rule, insufficient)
}

// Counts are how many Nodes the scheduler's message counts for each rule.
type Counts struct {
	Nodes int
	Of    map[string]int
}

var (
	messageHead = regexp.MustCompile(`^0/(\d+) nodes are available: `)
	messagePart = regexp.MustCompile(`^(\d+) (.+)$`)
)

// Parse reads the message of the scheduler. It is false if the text is none, or if the scheduler has refused the Pod before it looked at
// Nodes.
// Source of the form: k8s.io/kubernetes/pkg/scheduler/framework, FitError.
func Parse(message string) (c Counts, ok bool) {
	head := messageHead.FindStringSubmatch(message)
	if head == nil {
		return c, false
	}
	c.Nodes, _ = strconv.Atoi(head[1]) // of a number that does not fit an int it is 0, and no count agrees
	text, _, _ := strings.Cut(message[len(head[0]):], " preemption: ")
	c.Of = map[string]int{}
	for part := range strings.SplitSeq(strings.TrimRight(text, ". "), ", ") {
		counted := messagePart.FindStringSubmatch(part)
		if counted == nil {
			return Counts{}, false
		}
		n, _ := strconv.Atoi(counted[1])
		c.Of[counted[2]] += n
	}
	return c, len(c.Of) > 0
}

// Compare returns where the scheduler's counts cannot be those of the Nodes by the rules that they fail now; nothing if they agree. Counts of
// rules that the package does not check are returned by [Counts.Others].
func (c Counts) Compare(all []Result) (differences []string) {
	if c.Nodes != len(all) {
		differences = append(differences, fmt.Sprintf("the scheduler counts %d Nodes, and there are %d", c.Nodes, len(all)))
	}
	least, open := map[string]int{}, 0
	for i := range all {
		rules, certain := all[i].Counted()
		if !certain {
			open++
			continue
		}
		for _, rule := range rules {
			least[rule]++
		}
	}
	names := slices.AppendSeq(slices.Collect(keys(c.Of)), keys(least))
	slices.Sort(names)
	for _, rule := range slices.Compact(names) {
		if rule == VolumeAffinity && len(c.Others()) > 0 {
			continue // a rule that is not checked may refuse the Node before
		}
		if n := c.Of[rule]; Decides(rule) && (n < least[rule] || n > least[rule]+open) {
			differences = append(differences, fmt.Sprintf("the scheduler counts %d of %q, and by their state it is %s", n, rule, between(least[rule], open)))
		}
	}
	return differences
}

func between(least, open int) string {
	if open == 0 {
		return strconv.Itoa(least)
	}
	return fmt.Sprintf("%d to %d", least, least+open)
}

// Others returns the rules of the message that the package does not check, with their counts, in order.
func (c Counts) Others() (all []string) {
	for _, rule := range slices.Sorted(keys(c.Of)) {
		if !Decides(rule) {
			all = append(all, fmt.Sprintf("%d %s", c.Of[rule], rule))
		}
	}
	return all
}

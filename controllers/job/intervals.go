// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// interval is a range of completion indexes, both ends included.
type interval struct{ first, last int }

// intervals is a set of completion indexes: intervals in increasing order, with a gap between any
// two of them. A Job of 100,000 completions whose Pods end in about their order has a few. It is
// never changed.
type intervals []interval

// indexSet returns the set of some indexes. It sorts the slice that it gets.
func indexSet(indexes []int) intervals {
	slices.Sort(indexes)
	var s intervals
	for _, i := range indexes {
		s = s.extend(interval{i, i})
	}
	return s
}

// extend adds an interval that does not begin before the last one of the set. The set may share
// its memory with the result.
func (s intervals) extend(next interval) intervals {
	if n := len(s); n > 0 && next.first <= s[n-1].last+1 {
		s[n-1].last = max(s[n-1].last, next.last)
		return s
	}
	return append(s, next)
}

// parseIntervals reads the text form, as in "1,3-5,7". It leaves out indexes that are not below
// a limit, and parts that cannot be read: the text may come from a client that is not a
// controller.
//
// Source of the form: k8s.io/api/batch/v1, JobStatus.CompletedIndexes.
func parseIntervals(text string, limit int) intervals {
	var parts []interval
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(from)
		if err != nil || first < 0 || first >= limit {
			continue
		}
		last := first
		if isRange {
			if last, err = strconv.Atoi(to); err != nil || last < first {
				continue
			}
		}
		parts = append(parts, interval{first, min(last, limit-1)})
	}
	slices.SortFunc(parts, func(a, b interval) int { return cmp.Compare(a.first, b.first) })
	var s intervals
	for _, part := range parts {
		s = s.extend(part)
	}
	return s
}

// String writes the text form. Two neighbours have a comma between them, and three or more a dash.
// Source: k8s.io/kubernetes/pkg/controller/job, orderedIntervals.String.
func (s intervals) String() string {
	var b strings.Builder
	for i, part := range s {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(part.first))
		switch part.last {
		case part.first:
			continue
		case part.first + 1:
			b.WriteByte(',')
		default:
			b.WriteByte('-')
		}
		b.WriteString(strconv.Itoa(part.last))
	}
	return b.String()
}

// size returns how many indexes the set has.
func (s intervals) size() int {
	n := 0
	for _, part := range s {
		n += part.last - part.first + 1
	}
	return n
}

// has reports whether an index is in the set.
func (s intervals) has(index int) bool {
	_, found := slices.BinarySearchFunc(s, index, func(part interval, index int) int {
		switch {
		case part.last < index:
			return -1
		case part.first > index:
			return 1
		}
		return 0
	})
	return found
}

// union returns the indexes that are in either set.
func (s intervals) union(other intervals) intervals {
	all := make(intervals, 0, len(s)+len(other))
	for len(s) > 0 && len(other) > 0 {
		if s[0].first <= other[0].first {
			all, s = all.extend(s[0]), s[1:]
		} else {
			all, other = all.extend(other[0]), other[1:]
		}
	}
	for _, rest := range []intervals{s, other} {
		for _, part := range rest {
			all = all.extend(part)
		}
	}
	return all
}

// common returns how many indexes are in both sets.
func (s intervals) common(other intervals) int {
	n := 0
	for len(s) > 0 && len(other) > 0 {
		n += max(0, min(s[0].last, other[0].last)-max(s[0].first, other[0].first)+1)
		if s[0].last < other[0].last {
			s = s[1:]
		} else {
			other = other[1:]
		}
	}
	return n
}

// missing returns the first n indexes below a limit that are not in the set. It costs as much as
// the set has intervals, however large the limit is.
func (s intervals) missing(n, limit int) []int {
	var indexes []int
	next := 0
	fill := func(end int) {
		for ; next < end && len(indexes) < n; next++ {
			indexes = append(indexes, next)
		}
	}
	for _, part := range s {
		fill(min(part.first, limit))
		next = part.last + 1
	}
	fill(limit)
	return indexes
}

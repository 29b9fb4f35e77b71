// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
)

// What stands in an address for an empty part. No group and no namespace has such a name.
const (
	coreGroup     = "core"
	clusterScoped = "-"
)

// mostInAddress bounds each part of an address. Names of objects have 253 bytes at most.
const mostInAddress = 253

// address names an object in the addresses of the pages: "apps/deployments/shop/web".
type address struct {
	group, kind string // kind is a plural, as in the API, or the name of a kind
	key         object.Key
}

// parseAddress reads the four parts of an address.
func parseAddress(group, kind, namespace, name string) (address, error) {
	for _, part := range []struct{ what, text string }{{"group", group}, {"kind", kind}, {"namespace", namespace}, {"name", name}} {
		if err := checkPart(part.text); err != nil {
			return address{}, fmt.Errorf("the %s of the address: %w; want /o/GROUP/PLURAL/NAMESPACE/NAME, with %q for the core group and %q for objects of the cluster",
				part.what, err, coreGroup, clusterScoped)
		}
	}
	a := address{group: group, kind: kind, key: object.Key{Namespace: namespace, Name: name}}
	if group == coreGroup {
		a.group = ""
	}
	if namespace == clusterScoped {
		a.key.Namespace = ""
	}
	return a, nil
}

// checkPart refuses text that can be no part of a path of the API.
func checkPart(text string) error {
	switch {
	case text == "":
		return errors.New("it is empty")
	case len(text) > mostInAddress:
		return fmt.Errorf("it has more than %d bytes", mostInAddress)
	case text == "." || text == "..":
		return fmt.Errorf("%q is no name", text)
	case strings.ContainsFunc(text, func(r rune) bool { return r == '/' || r == '%' || r == unicode.ReplacementChar || !unicode.IsPrint(r) }):
		return errors.New("it has characters that no name has")
	}
	return nil
}

// path returns the address as a path: "/o/apps/deployments/shop/web".
func (a address) path() string {
	group, namespace := a.group, a.key.Namespace
	if group == "" {
		group = coreGroup
	}
	if namespace == "" {
		namespace = clusterScoped
	}
	return "/o/" + url.PathEscape(group) + "/" + url.PathEscape(a.kind) + "/" + url.PathEscape(namespace) + "/" + url.PathEscape(a.key.Name)
}

// choice is what the parameters of the view of an object choose.
type choice struct {
	run runID     // the run that is open; zero: none
	at  time.Time // the marked time; zero: now
	// below is how many objects below are named at least: those that are alike are not folded until then. 0: the usual.
	below int
}

// runID identifies a run. Each manager numbers its own runs, so the time when it began is a part of it.
type runID struct {
	number uint64
	began  int64 // in milliseconds since 1970; 0: any, as a user may enter the number alone
}

// idOf returns the ID of a run.
func idOf(number uint64, began time.Time) runID { return runID{number, began.UnixMilli()} }

// names reports whether the ID is that of a run.
func (id runID) names(run *runs.Run) bool {
	return id.number != 0 && id.number == run.Number && (id.began == 0 || id.began == run.Began.UnixMilli())
}

// String returns "7-mf3k2a1q": the number, and the time in the base 36.
func (id runID) String() string {
	text := strconv.FormatUint(id.number, 10)
	if id.began != 0 {
		text += "-" + strconv.FormatInt(id.began, 36)
	}
	return text
}

// parseRunID reads what String writes.
func parseRunID(text string) (id runID, err error) {
	number, began, dated := strings.Cut(text, "-")
	if id.number, err = strconv.ParseUint(number, 10, 64); err == nil && dated {
		id.began, err = strconv.ParseInt(began, 36, 64)
	}
	if err != nil || id.number == 0 || dated && id.began <= 0 {
		return runID{}, fmt.Errorf("run=%q: want the number of a run", text)
	}
	return id, nil
}

// mostScrubbed is the year 9999 in milliseconds: a later one has no form in RFC 3339.
const mostScrubbed = 253370764800000

// parseChoice reads the parameters of the view of an object.
func parseChoice(q url.Values) (c choice, err error) {
	if text := q.Get("run"); text != "" {
		if c.run, err = parseRunID(text); err != nil {
			return choice{}, err
		}
	}
	if text := q.Get("at"); text != "" {
		if c.at, err = time.Parse(time.RFC3339Nano, text); err != nil {
			return choice{}, fmt.Errorf("at=%q: want a time such as 2026-01-02T15:04:05Z", text)
		}
	}
	if text := q.Get("scrub"); text != "" && c.at.IsZero() {
		milliseconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil || milliseconds < 0 || milliseconds > mostScrubbed {
			return choice{}, fmt.Errorf("scrub=%q: want milliseconds since 1970", text)
		}
		if at := time.UnixMilli(milliseconds); at.Before(time.Now()) { // otherwise it is now
			c.at = at
		}
	}
	if text := q.Get("below"); text != "" {
		if c.below, err = strconv.Atoi(text); err != nil || c.below < 1 || c.below > mostUnfolded {
			return choice{}, fmt.Errorf("below=%q: want a number of objects from 1 to %d", text, mostUnfolded)
		}
	}
	return c, nil
}

// query returns the parameters of a choice, with "?" if there are any.
func (c choice) query() string {
	q := url.Values{}
	if c.run.number != 0 {
		q.Set("run", c.run.String())
	}
	if !c.at.IsZero() {
		q.Set("at", c.at.UTC().Format(time.RFC3339Nano))
	}
	if c.below != 0 {
		q.Set("below", strconv.Itoa(c.below))
	}
	if len(q) == 0 {
		return ""
	}
	return "?" + q.Encode()
}

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
	run uint64    // the number of the run that is open; 0: none
	at  time.Time // the marked time; zero: now
}

// parseChoice reads the parameters of the view of an object.
func parseChoice(q url.Values) (c choice, err error) {
	if text := q.Get("run"); text != "" {
		if c.run, err = strconv.ParseUint(text, 10, 64); err != nil || c.run == 0 {
			return choice{}, fmt.Errorf("run=%q: want the number of a run", text)
		}
	}
	if text := q.Get("at"); text != "" {
		if c.at, err = time.Parse(time.RFC3339Nano, text); err != nil {
			return choice{}, fmt.Errorf("at=%q: want a time such as 2026-01-02T15:04:05Z", text)
		}
	}
	return c, nil
}

// query returns the parameters of a choice, with "?" if there are any.
func (c choice) query() string {
	q := url.Values{}
	if c.run != 0 {
		q.Set("run", strconv.FormatUint(c.run, 10))
	}
	if !c.at.IsZero() {
		q.Set("at", c.at.UTC().Format(time.RFC3339Nano))
	}
	if len(q) == 0 {
		return ""
	}
	return "?" + q.Encode()
}

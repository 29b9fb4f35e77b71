// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/runs"
)

// Get reads a page of a manager, by its path with the parameters. The error says that there is no answer.
type Get func(ctx context.Context, path string) (code int, body []byte, err error)

// Remote is the record of a manager that serves its pages at an address. get sends the requests.
func Remote(address string, get Get) Record { return remote{address, get} }

type remote struct {
	address string // for errors
	get     Get
}

// About implements Record.
func (r remote) About(ctx context.Context, o runs.Object) (Found, error) {
	q := ofObject(o)
	q.Set("origins", "true")
	q.Set("limit", strconv.Itoa(mostRuns))
	return r.ask(ctx, q)
}

// Newest implements Record.
func (r remote) Newest(ctx context.Context, q runs.Query) (Found, error) {
	v := url.Values{}
	if q.Object != (runs.Object{}) {
		v = ofObject(q.Object)
	}
	if q.Controller != "" {
		v.Set("controller", q.Controller)
	}
	if q.Key != "" {
		v.Set("key", q.Key)
	}
	if q.Namespace != "" {
		v.Set("namespace", q.Namespace)
	}
	if q.Contains != "" {
		v.Set("contains", q.Contains)
	}
	if q.Wrote {
		v.Set("wrote", "true")
	}
	if !q.Since.IsZero() {
		v.Set("since", q.Since.UTC().Format(time.RFC3339Nano))
	}
	if q.Limit > 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	return r.ask(ctx, v)
}

func ofObject(o runs.Object) url.Values {
	return url.Values{"kind": {o.Kind}, "group": {o.Group}, "namespace": {o.Namespace}, "name": {o.Name}, "uid": {string(o.UID)}}
}

// mostRepeated is how many bytes of an answer an error repeats.
const mostRepeated = 200

// ask reads /debug/runs.
func (r remote) ask(ctx context.Context, q url.Values) (Found, error) {
	q.Set("format", "json")
	code, body, err := r.get(ctx, "/debug/runs?"+q.Encode())
	switch {
	case err != nil:
		return Found{}, err
	case code == http.StatusUnauthorized:
		return Found{}, fmt.Errorf("the manager at %s asks who you are: the kubeconfig has no client certificate that it accepts, and tokens are not sent to an address that a Lease names; with --manager %[1]s, and a certificate of the manager for which an authority of the kubeconfig vouches, the token is sent", r.address)
	case code != http.StatusOK:
		return Found{}, fmt.Errorf("the manager at %s answers %d %s: %s", r.address, code, http.StatusText(code), strings.TrimSpace(string(body[:min(len(body), mostRepeated)])))
	}
	var found struct {
		Format int `json:"format"` // 0 is that of managers before the first format had a number
		Found
	}
	err = json.Unmarshal(body, &found)
	switch {
	case found.Format > runs.PageFormat:
		return Found{}, fmt.Errorf("the manager at %s is of a newer version: its record has format %d, and this setpoint reads format %d and older; use the setpoint of the manager's version",
			r.address, found.Format, runs.PageFormat)
	case err != nil:
		return Found{}, fmt.Errorf("the manager at %s is of another version, and this setpoint cannot read its record: %w", r.address, err)
	}
	return found.Found, nil
}

// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/explain"
	"github.com/setpoint-io/setpoint/internal/announce"
	"github.com/setpoint-io/setpoint/runs"
)

// record is the record of runs of the cluster's manager.
type record struct {
	url         string
	pages       *http.Client
	notRecorded string // why there is no manager to ask; empty: there is one
}

// recordOf finds the manager: at an address, or at the one that it has announced.
func recordOf(ctx context.Context, c *client.Client, config *rest.Config, address string) *record {
	m := announce.Manager{URL: strings.TrimSuffix(address, "/")}
	if address == "" {
		var err error
		if m, err = announce.Find(ctx, c); err != nil {
			return &record{notRecorded: err.Error()}
		}
	}
	pages, err := m.Client(config)
	if err != nil {
		return &record{notRecorded: err.Error()}
	}
	return &record{url: m.URL, pages: pages}
}

// page is what a manager answers. Its JSON is that of /debug/runs of package manager.
type page struct {
	Stats   runs.Stats       `json:"stats"`
	Present []runs.Run       `json:"present"`
	Runs    []explain.Traced `json:"runs"`
}

// Bounds of an answer: of its bytes, and of the runs that are asked for.
const (
	mostBytes = 32 << 20
	mostRuns  = "60"
)

// about returns what the record has about an object.
func (r *record) about(ctx context.Context, o runs.Object) (page, error) {
	if r.notRecorded != "" {
		return page{}, errors.New(r.notRecorded)
	}
	q := url.Values{"kind": {o.Kind}, "group": {o.Group}, "namespace": {o.Namespace}, "name": {o.Name}, "uid": {string(o.UID)},
		"format": {"json"}, "origins": {"true"}, "limit": {mostRuns}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url+"/debug/runs?"+q.Encode(), nil)
	if err != nil {
		return page{}, err
	}
	response, err := r.pages.Do(request)
	if err != nil {
		return page{}, fmt.Errorf("the manager at %s does not answer: %w", r.url, errors.Unwrap(err))
	}
	defer response.Body.Close() // it was read to its end, or nothing is left to be done about it
	body, err := io.ReadAll(io.LimitReader(response.Body, mostBytes))
	switch {
	case err != nil:
		return page{}, fmt.Errorf("reading the answer of the manager at %s: %w", r.url, err)
	case response.StatusCode == http.StatusUnauthorized:
		return page{}, fmt.Errorf("the manager at %s asks who you are: the kubeconfig has no client certificate, and tokens are not sent to an address that a Lease names", r.url)
	case response.StatusCode != http.StatusOK:
		return page{}, fmt.Errorf("the manager at %s answers %s: %s", r.url, response.Status, strings.TrimSpace(string(body[:min(len(body), 200)])))
	}
	var p page
	if err := json.Unmarshal(body, &p); err != nil {
		return page{}, fmt.Errorf("the manager at %s answers what this version of setpoint cannot read: %w", r.url, err)
	}
	return p, nil
}

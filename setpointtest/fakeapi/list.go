// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/object"
)

// listOptions reads the options of a list or a watch.
func (q *Request) listOptions() (*metav1.ListOptions, error) {
	options := &metav1.ListOptions{}
	query := q.HTTP.URL.Query()
	if err := metav1.Convert_url_Values_To_v1_ListOptions(&query, options, nil); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	errs := validation.ValidateListOptions(&internalversion.ListOptions{
		Watch: q.Verb == "watch", Continue: options.Continue, SendInitialEvents: options.SendInitialEvents,
		ResourceVersion: options.ResourceVersion, ResourceVersionMatch: options.ResourceVersionMatch,
	}, true)
	if len(errs) > 0 {
		return nil, apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("ListOptions").GroupKind(), "", errs)
	}
	return options, nil
}

// continuation is what a continue token says, in upstream's form. Source:
// k8s.io/apiserver/pkg/storage, continueToken.
type continuation struct {
	APIVersion string `json:"v"`
	Version    int64  `json:"rv"` // below zero: of the newest state
	Start      string `json:"start"`
}

const continuationVersion = "meta.k8s.io/v1"

// The words of k8s.io/apiserver/pkg/storage/etcd3.
const (
	expiredList      = "The resourceVersion for the provided list is too old."
	expiredContinue  = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list."
	retryAfterExceed = 1 // seconds
)

func (c continuation) String() string {
	return base64.RawURLEncoding.EncodeToString(must(json.Marshal(c)))
}

func parseContinuation(token string) (continuation, error) {
	var c continuation
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	switch {
	case err != nil:
		return c, apierrors.NewBadRequest("invalid continue token: continue key is not valid: " + err.Error())
	case c.APIVersion != continuationVersion || c.Version == 0 || c.Start == "":
		return c, apierrors.NewBadRequest("invalid continue token: continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
	}
	return c, nil
}

// list answers with all objects that are selected, or a page of them.
func (r *Resource) list(q *Request, _ *answer) (result, error) {
	options, err := q.listOptions()
	if err != nil {
		return result{}, err
	}
	selected, err := r.newSelection(q, options)
	if err != nil {
		return result{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	version, start, err := r.listAt(options)
	if err != nil {
		return result{}, err
	}
	l := &listing{meta: metav1.ListMeta{ResourceVersion: strconv.FormatUint(version, 10)}}
	left := int64(0) // beyond the page
	var last string
	for _, one := range sorted(r.at(version)) {
		key := storageKey(one.key)
		if key < start || !selected.takes(one.state) {
			continue
		}
		if options.Limit > 0 && int64(len(l.items)) == options.Limit {
			left++
			continue
		}
		l.items = append(l.items, one.state)
		last = key
	}
	if left > 0 {
		l.meta.Continue = continuation{continuationVersion, int64(version), last + "\x00"}.String()
		if selected.everything() {
			l.meta.RemainingItemCount = &left
		}
	}
	return result{code: http.StatusOK, list: l}, nil
}

// listAt returns the version that a list is to be of, and the key that it begins with. mu
// is held.
func (r *Resource) listAt(o *metav1.ListOptions) (version uint64, start string, err error) {
	if o.Continue != "" {
		c, err := parseContinuation(o.Continue)
		switch {
		case err != nil:
			return 0, "", err
		case o.ResourceVersion != "" && o.ResourceVersion != "0":
			return 0, "", apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
		case c.Version < 0:
			return r.version, c.Start, nil
		}
		version := uint64(c.Version)
		if version > r.version || !r.knows(version) {
			gone := apierrors.NewResourceExpired(expiredContinue)
			gone.ErrStatus.Continue = continuation{continuationVersion, -1, c.Start}.String()
			return 0, "", gone
		}
		return version, c.Start, nil
	}
	asked, err := parseVersion(o.ResourceVersion)
	if err != nil {
		return 0, "", apierrors.NewBadRequest("invalid resource version: " + err.Error())
	}
	exact := o.ResourceVersionMatch == metav1.ResourceVersionMatchExact ||
		o.ResourceVersionMatch == "" && o.Limit > 0 && asked > 0
	switch {
	case asked > r.version:
		return 0, "", tooLarge(asked, r.version)
	case exact && !r.knows(asked):
		return 0, "", apierrors.NewResourceExpired(expiredList)
	case exact:
		return asked, "", nil
	}
	return r.version, "", nil
}

// parseVersion reads a resourceVersion. "" is 0, for any.
func parseVersion(text string) (uint64, error) {
	if text == "" {
		return 0, nil
	}
	version, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, field.Invalid(field.NewPath("resourceVersion"), text, err.Error())
	}
	return version, nil
}

// tooLarge is the answer to a request for a version that is still to come. Source:
// k8s.io/apiserver/pkg/storage, NewTooLargeResourceVersionError.
func tooLarge(asked, now uint64) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", asked, now), retryAfterExceed)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version",
	}}
	return err
}

// keyed is an object with its key.
type keyed struct {
	key   object.Key
	state *state
}

// sorted returns objects in the order of lists, which is that of their keys in etcd.
func sorted(objects map[object.Key]*state) []keyed {
	all := make([]keyed, 0, len(objects))
	for key, o := range objects {
		all = append(all, keyed{key, o})
	}
	slices.SortFunc(all, func(a, b keyed) int { return strings.Compare(storageKey(a.key), storageKey(b.key)) })
	return all
}

func storageKey(key object.Key) string { return key.String() }

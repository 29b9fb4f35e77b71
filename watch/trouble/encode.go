// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package trouble

import (
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// mostEncoded is how many bytes Encode returns at most: the journal has room for 4096. A Pod of
// dozens of containers that all fail has more episodes than that, and the last are left out.
const mostEncoded = 4000

// kept is an episode as it is encoded. Times are in seconds since 1970, durations in seconds.
type kept struct {
	Name     string `json:"name"`
	Reason   string `json:"reason,omitempty"`
	Since    int64  `json:"since"`
	Good     int64  `json:"good,omitempty"`
	Reported int    `json:"reported,omitempty"`
	Restarts int64  `json:"restarts,omitempty"`
	Before   int64  `json:"before,omitempty"`
	Patience int64  `json:"patience,omitempty"`
	Quiet    int64  `json:"quiet,omitempty"`
	Unclear  bool   `json:"unclear,omitempty"`
	Minor    bool   `json:"minor,omitempty"`
}

// Encode returns the episodes of an object as one line of JSON, for [Tracker.Restore]. It is empty
// if there are none, and has no values of the object but reasons.
func (t *Tracker) Encode(o Object) string {
	entry := t.objects[o]
	if entry == nil {
		return ""
	}
	all := make([]kept, len(entry.episodes))
	for i, e := range entry.episodes {
		all[i] = kept{
			Name: clip(e.Name, 400), Reason: clip(e.Reason, 400), Since: e.Since.Unix(), Reported: e.Reported, Restarts: e.Restarts, Before: e.Before,
			Patience: int64(e.Patience / time.Second), Quiet: int64(e.Quiet / time.Second), Unclear: e.unclear, Minor: e.minor,
		}
		if !e.Good.IsZero() {
			all[i].Good = e.Good.Unix()
		}
	}
	for ; len(all) > 0; all = all[:len(all)-1] {
		if data, err := json.Marshal(all); err == nil && len(data) <= mostEncoded {
			return string(data)
		}
	}
	return ""
}

// Restore notes the episodes of an object that were encoded, unless it has some already. A text that
// Encode did not return is ignored: what goes on is reported again.
func (t *Tracker) Restore(o Object, uid types.UID, encoded string, now time.Time) {
	if encoded == "" || t.objects[o] != nil {
		return
	}
	var all []kept
	if json.Unmarshal([]byte(encoded), &all) != nil {
		return
	}
	entry := &tracked{object: o, uid: uid, index: -1}
	for _, k := range all {
		e := episode{
			Name: k.Name, Reason: k.Reason, Since: past(k.Since, now), Reported: k.Reported, Restarts: k.Restarts, Before: k.Before,
			Patience: within(k.Patience, slow), Quiet: within(k.Quiet, longRun), unclear: k.Unclear, minor: k.Minor,
		}
		if k.Good != 0 {
			e.Good = past(k.Good, now)
		}
		if k.Name == "" || entry.find(k.Name) >= 0 {
			return
		}
		entry.episodes = append(entry.episodes, e)
	}
	t.keep(entry)
}

// past returns a time that is not after now: the clock may have been set back.
func past(seconds int64, now time.Time) time.Time {
	if at := time.Unix(seconds, 0); at.Before(now) {
		return at
	}
	return now
}

// within returns a duration between 0 and the largest that there is.
func within(seconds int64, largest time.Duration) time.Duration {
	return time.Duration(min(max(seconds, 0), int64(largest/time.Second))) * time.Second
}

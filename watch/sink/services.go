// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink

// service is what is to be known of a service beside its URL.
type service struct {
	// limit is how long a message can be, in bytes. What the library cuts off, or refuses,
	// is not told to anybody.
	limit int
	// title says whether a message can have a title of its own, or a mail a subject. For
	// Matrix and Mattermost the library takes one, and does not send it.
	title bool
	// login says that the library connects when the service is made.
	login bool
}

// services are those of the library, by the scheme of their URLs. The limits are those in
// its code, or in the documentation of the service, with room for a title. Not among them
// is logger, which sends nothing.
// Source: github.com/nicholas-fedor/shoutrrr v0.13.2, pkg/services.
var services = map[string]service{
	"bark":       {limit: 3000, title: true},
	"discord":    {limit: 1900, title: true}, // a chunk: longer ones are split
	"generic":    {limit: 64_000, title: true},
	"googlechat": {limit: 4000},
	"gotify":     {limit: 16_000, title: true},
	"hangouts":   {limit: 4000},
	"ifttt":      {limit: 2000, title: true},
	"join":       {limit: 3000, title: true},
	"lark":       {limit: 4000, title: true},
	"matrix":     {limit: 30_000, login: true},
	"mattermost": {limit: 16_000},
	"notifiarr":  {limit: 1900},
	"ntfy":       {limit: 4000, title: true},
	"opsgenie":   {limit: 15_000, title: true},
	"pagerduty":  {limit: 1000},
	"pushbullet": {limit: 4000, title: true},
	"pushover":   {limit: 1000, title: true},
	"rocketchat": {limit: 4900},
	"signal":     {limit: 1900},
	"slack":      {limit: 16_000, title: true},
	"smtp":       {limit: 256_000, title: true},
	"teams":      {limit: 16_000, title: true},
	"telegram":   {limit: 3800, title: true},
	"wecom":      {limit: 4000},
	"zulip":      {limit: 9900},
}

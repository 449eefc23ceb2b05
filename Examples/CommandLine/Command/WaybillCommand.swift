import ArgumentParser

/// Sends, receives and looks at messages over MQTT, STOMP and server-sent events.
@main
struct WaybillCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "waybill",
        abstract: "Sends, receives and looks at messages over MQTT, STOMP and server-sent events.",
        discussion: """
            EXAMPLES:
              waybill sub mqtt://127.0.0.1 -t 'lamps/#' -v
              waybill pub mqtt://127.0.0.1 -t lamps/hall -m on -r
              waybill sub https://news.example/events/today
              waybill check stomp://127.0.0.1 --virtual-host /

            CREDENTIALS:
              WAYBILL_USERNAME, WAYBILL_PASSWORD and WAYBILL_TOKEN,
              a file, or --ask-password. No secret has to be an argument,
              which other users of a computer could read.

            SERVERS:
              --server NAME takes the settings below [NAME] in the file
              $WAYBILL_SERVERS or ~/.config/waybill/servers:
                [home]
                url = mqtts://broker.example
                username = ada
                password-file = ~/.config/waybill/home.password

            COMPLETION:
              waybill --generate-completion-script bash > waybill.bash
              waybill --generate-completion-script zsh > _waybill

            \(ExitStatus.table)
            """,
        version: "1.0",
        subcommands: [
            Pub.self, Sub.self, RequestCommand.self, Watch.self, Bench.self, Check.self,
        ]
    )
}
